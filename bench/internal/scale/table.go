package scale

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// WriteTable writes the results for a reader.
func WriteTable(w io.Writer, results []*Result) error {
	for _, r := range results {
		fmt.Fprintf(w, "\n%s (%s), %.1f s\n", r.Scenario, r.What, r.Seconds)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, f := range r.Figures {
			verdict := ""
			if f.Bound != "" {
				verdict = map[bool]string{true: "reached", false: "missed"}[f.Held]
			}
			fmt.Fprintf(t, "  %s\t%s %s\t%s\t%s\n", f.Name, measure.Number(f.Value), f.Unit, f.Bound, verdict)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		for _, n := range r.Notes {
			fmt.Fprintln(w, "  note:", n)
		}
	}
	return nil
}

package scale

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteJSON writes the results as one array.
func WriteJSON(w io.Writer, results []*Result) error {
	if results == nil {
		results = []*Result{}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(results)
}

// ReadJSON is the reverse of WriteJSON.
func ReadJSON(r io.Reader) (results []*Result, err error) {
	err = json.NewDecoder(r).Decode(&results)
	return results, err
}

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
			fmt.Fprintf(t, "  %s\t%.6g %s\t%s\t%s\n", f.Name, f.Value, f.Unit, f.Bound, verdict)
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

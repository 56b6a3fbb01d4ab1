package rows

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// WriteTable writes the results for a reader: a line for each, then the costs of a
// median operation, then the figures to distrust.
func WriteTable(w io.Writer, results []*Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "row\twhat\tsize\tours\treference\tratio\tprocessor: ours\treference\tratio\ttarget\tverdict\tspread")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.What, dash(r.Size),
			value(r.Ours, r.Unit), r.reference(), r.ratio(), micros(r.Processor), micros(r.ReferenceProcessor), quotient(r.ProcessorRatio), dash(r.Target), r.Verdict, r.spread())
	}
	fmt.Fprintln(t)
	fmt.Fprintln(t, "row\twhich\tours: p50 / p99 / p99.9 µs\treference\tours: per operation\treference: per operation")
	for _, r := range results {
		if r.Latency == nil && r.ReferenceLatency == nil && len(r.Costs) == 0 {
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.which(), quantiles(r.Latency), quantiles(r.ReferenceLatency), costs(r.Costs), costs(r.ReferenceCosts))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return writeNotes(w, results)
}

// writeNotes tells the reference of each row, what was counted, and which figures to distrust.
func writeNotes(w io.Writer, results []*Result) error {
	against := map[string][]string{}
	var order []string
	for _, r := range results {
		if r.Against == "" {
			continue
		}
		if against[r.Against] == nil {
			order = append(order, r.Against)
		}
		if !slices.Contains(against[r.Against], r.ID) {
			against[r.Against] = append(against[r.Against], r.ID)
		}
	}
	fmt.Fprintln(w, "\nReferences, measured in turn with ours in this process; ratio is ours / reference:")
	for _, a := range order {
		fmt.Fprintf(w, "  %s: %s\n", strings.Join(against[a], ", "), a)
	}
	for _, r := range results {
		if len(r.Counts) > 0 {
			fmt.Fprintf(w, "counted: %s %s: %s\n", r.ID, r.which(), costs(measure.Costs(r.Counts)))
		}
		if r.Noisy {
			fmt.Fprintf(w, "warning: %s %s: the machine is noisy: rounds of the reference differ by %.0f %%\n", r.ID, r.which(), 100*r.Reference.Spread)
		}
	}
	_, err := fmt.Fprintln(w, summary(results))
	return err
}

// summary counts the verdicts.
func summary(results []*Result) string {
	n := map[Verdict]int{}
	for _, r := range results {
		n[r.Verdict]++
	}
	return fmt.Sprintf("%d lines: %d reached, %d missed, %d without a reference", len(results), n[Reached], n[Missed], n[NoReference])
}

// which tells the lines of one row apart.
func (r *Result) which() string { return cmp.Or(r.Size, r.What) }

func (r *Result) reference() string {
	if r.Reference == nil {
		return "–"
	}
	return value(*r.Reference, r.Unit)
}

func (r *Result) ratio() string {
	if r.Reference == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f", r.Ratio)
}

// micros is a processor time in microseconds.
func micros(nanos float64) string {
	if nanos == 0 {
		return "–"
	}
	return measure.Number(nanos/1e3) + " µs"
}

func quotient(ratio float64) string {
	if ratio == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", ratio)
}

// spread is that of our rounds and of the reference's.
func (r *Result) spread() string {
	s := fmt.Sprintf("%.0f %%", 100*r.Ours.Spread)
	if r.Reference != nil {
		s += fmt.Sprintf(" / %.0f %%", 100*r.Reference.Spread)
	}
	return s
}

func value(f measure.Figure, unit string) string { return measure.Number(f.Median) + " " + unit }

func quantiles(q *measure.Quantiles) string {
	if q == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f / %.0f / %.0f", q.P50, q.P99, q.P999)
}

func costs(c measure.Costs) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s %.3g", name, c[name]))
	}
	return dash(strings.Join(parts, ", "))
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
)

// row is the figure of a system in a workload: the median of its rounds. Command
// holdfast-plot draws the fields What, System, Value and Unit.
type row struct {
	What string `json:"what"`
	figure.System
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Rounds int     `json:"rounds"`

	of figure.Workload
}

// sum makes rows of the figures: by workload, by n, and in the order in which the
// systems were first measured.
func sum(all []figure.Figure) (rows []row) {
	for _, w := range figure.Workloads {
		var some []figure.Figure
		for _, f := range all {
			if f.Workload == w.ID {
				some = append(some, f)
			}
		}
		slices.SortStableFunc(some, func(a, b figure.Figure) int { return a.N - b.N })
		for len(some) > 0 {
			first := some[0]
			var values []float64
			some = slices.DeleteFunc(some, func(f figure.Figure) bool {
				same := f.N == first.N && f.Name == first.Name
				if same {
					values = append(values, f.Value)
				}
				return same
			})
			v := measure.FigureOf(values)
			rows = append(rows, row{
				What: fmt.Sprintf(w.What, thousands(float64(first.N))), System: first.System, Unit: w.Unit, of: w,
				Value: v.Median, Min: v.Min, Max: v.Max, Rounds: len(values),
			})
		}
	}
	return rows
}

// show prints the rows, each workload under a line of its own.
func show(out io.Writer, rows []row, ours string) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	what := ""
	for _, r := range rows {
		if r.What != what {
			what = r.What
			fmt.Fprintf(t, "\n%s\n  system\tfigure\tleast to greatest\tours is\treached\tsynced\n", what)
		}
		fmt.Fprintf(t, "  %s\t%s %s\t%s to %s\t%s\t%s\t%s\n", r.Name, number(r.Value), r.Unit,
			number(r.Min), number(r.Max), better(rows, r, ours), r.Over, r.Durability)
	}
	return t.Flush()
}

// unsteady says how many times as long a sync of the disk alone took at worst as at
// best, if that is too much for figures to be compared; else it is empty.
func unsteady(rows []row) string {
	const most = 1.5
	least, greatest := math.Inf(1), 0.0
	for _, r := range rows {
		if r.of.ID == figure.Workloads[0].ID {
			least, greatest = min(least, r.Min), max(greatest, r.Max)
		}
	}
	if greatest <= most*least {
		return ""
	}
	return fmt.Sprintf("warning: the disk alone was up to %.2g times as slow for one system as for another: the machine is not quiet, do not quote this run", greatest/least)
}

// better is how many times as good ours is in the workload of a row of another.
func better(rows []row, r row, ours string) string {
	i := slices.IndexFunc(rows, func(o row) bool { return o.What == r.What && o.Name == ours })
	if r.Name == ours || i < 0 || r.Value == 0 || rows[i].Value == 0 {
		return "-"
	}
	times := rows[i].Value / r.Value
	if r.of.Less {
		times = 1 / times
	}
	return fmt.Sprintf("%.3g ×", times)
}

// number prints three digits at least, whole numbers with their thousands.
func number(v float64) string {
	if math.Abs(v) >= 100 {
		return thousands(math.Round(v))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func thousands(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	var groups []string
	for len(s) > 3 {
		groups = append([]string{s[len(s)-3:]}, groups...)
		s = s[:len(s)-3]
	}
	return strings.Join(append([]string{s}, groups...), ",")
}

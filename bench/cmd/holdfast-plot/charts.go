package main

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/bench/internal/rows"
	"github.com/holdfast-dev/holdfast/bench/internal/scale"
)

// rowCharts draws each row that was measured at two sizes at least: ours and the
// reference over the number in the size.
func rowCharts(results []*rows.Result) (charts []chart) {
	type key struct{ id, what, over, unit string }
	groups := map[key][]*rows.Result{}
	var order []key
	for _, r := range results {
		if r.N == 0 {
			continue
		}
		k := key{r.ID, r.What, over(r.Size), r.Unit}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	for _, k := range order {
		group := groups[k]
		if len(group) < 2 {
			continue
		}
		slices.SortFunc(group, func(a, b *rows.Result) int { return cmp.Compare(a.N, b.N) })
		charts = append(charts, sizes(k.id+": "+k.what, k.over, k.unit, group))
	}
	return named(charts)
}

// over is the unit of a size, without its numbers except the fixed ones: for "objects=1
// callers=64" it is "callers, objects=1".
func over(size string) string {
	parts := strings.Fields(size)
	if len(parts) == 0 {
		return ""
	}
	name, _, _ := strings.Cut(parts[len(parts)-1], "=")
	return strings.Join(append([]string{name}, parts[:len(parts)-1]...), ", ")
}

// sizes is the chart of one row.
func sizes(title, over, unit string, group []*rows.Result) chart {
	if _, fixed, ok := strings.Cut(over, ", "); ok {
		title += ", " + fixed
	}
	c := chart{file: title, title: title, x: over, y: unit, logX: true}
	ours, reference := line{name: "Holdfast"}, line{dashed: true}
	for _, r := range group {
		ours.points = append(ours.points, [2]float64{r.N, r.Ours.Median})
		if r.Reference != nil {
			reference.name = r.Against
			reference.points = append(reference.points, [2]float64{r.N, r.Reference.Median})
		}
	}
	c.lines = []line{ours}
	if len(reference.points) > 0 {
		c.lines = append(c.lines, reference)
	}
	return c
}

// scaleCharts draws the curves of the scenarios; those of latencies together.
func scaleCharts(results []*scale.Result) (charts []chart) {
	for _, r := range results {
		if r.Scenario == "load" {
			charts = append(charts, latencies(r.Curves)...)
			continue
		}
		for _, c := range r.Curves {
			if len(c.Points) > 1 {
				charts = append(charts, chart{file: c.Name, title: c.Name, x: c.X, y: c.Y, lines: []line{{"Holdfast", c.Points, false}}})
			}
		}
	}
	return named(charts)
}

// latencies is one chart with all quantiles of all sides.
func latencies(curves []scale.Curve) []chart {
	if len(curves) == 0 {
		return nil
	}
	c := chart{
		file: "latency against load", title: "latency of durable calls against load", x: curves[0].X, y: curves[0].Y, logY: true,
	}
	for _, curve := range curves {
		c.lines = append(c.lines, line{curve.Name, curve.Points, !strings.Contains(curve.Name, "holdfast")})
	}
	return []chart{c}
}

// peer is a figure of some system: an element of the JSON of peers.
type peer struct {
	What   string  `json:"what"`
	System string  `json:"system"` // with its durability, such as "Redis, appendfsync always"
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
}

// fromPeers makes a chart of each thing that was measured of several systems.
func fromPeers(r io.Reader) (charts []chart, err error) {
	var peers []peer
	if err := json.NewDecoder(r).Decode(&peers); err != nil {
		return nil, err
	}
	for _, p := range peers {
		i := slices.IndexFunc(charts, func(c chart) bool { return c.title == p.What })
		if i < 0 {
			i = len(charts)
			charts = append(charts, chart{file: "peers " + p.What, title: p.What, x: p.Unit})
		}
		charts[i].bars = append(charts[i].bars, bar{p.System, p.Value})
	}
	return named(charts), nil
}

// named turns the titles into names of files: lower case, no blanks, each once.
func named(charts []chart) []chart {
	seen := map[string]bool{}
	for i := range charts {
		name := strings.Trim(strings.Join(strings.FieldsFunc(strings.ToLower(charts[i].file), func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9')
		}), "-"), "-")
		for seen[name] {
			name += "-more"
		}
		seen[name] = true
		charts[i].file = name
	}
	return charts
}

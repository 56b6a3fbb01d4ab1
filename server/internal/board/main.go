// Board prints the board of Grafana for Holdfast, made of the table of metrics, so that no panel
// asks for a metric that does not exist:
//
//	go run ./server/internal/board > ops/grafana/holdfast.json
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/metric"
)

func main() {
	b, err := render(metric.All())
	if err == nil {
		_, err = os.Stdout.Write(b)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "board: %v\n", err)
		os.Exit(1)
	}
}

// The width of a board is 24 columns.
const (
	columns     = 24
	panelWidth  = 8
	panelHeight = 7
)

type board struct {
	Title         string     `json:"title"`
	UID           string     `json:"uid"`
	Tags          []string   `json:"tags"`
	SchemaVersion int        `json:"schemaVersion"`
	Refresh       string     `json:"refresh"`
	Time          timeRange  `json:"time"`
	Templating    templating `json:"templating"`
	Panels        []panel    `json:"panels"`
}

type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type templating struct {
	List []variable `json:"list"`
}

// variable is a choice above the panels.
type variable struct {
	Name       string  `json:"name"`
	Label      string  `json:"label"`
	Type       string  `json:"type"`
	Query      string  `json:"query"`
	Datasource *source `json:"datasource,omitempty"`
	Refresh    int     `json:"refresh,omitempty"`
	Multi      bool    `json:"multi,omitempty"`
	IncludeAll bool    `json:"includeAll,omitempty"`
	AllValue   string  `json:"allValue,omitempty"`
}

type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// panel is a graph, or the heading of a group.
type panel struct {
	ID          int          `json:"id"`
	Type        string       `json:"type"`
	Title       string       `json:"title"`
	Description string       `json:"description,omitempty"`
	Datasource  *source      `json:"datasource,omitempty"`
	GridPos     place        `json:"gridPos"`
	FieldConfig *fieldConfig `json:"fieldConfig,omitempty"`
	Targets     []target     `json:"targets,omitempty"`
}

type place struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type fieldConfig struct {
	Defaults fieldDefaults `json:"defaults"`
}

type fieldDefaults struct {
	Unit string  `json:"unit"`
	Min  float64 `json:"min"`
}

// target is a query.
type target struct {
	RefID        string `json:"refId"`
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
}

// prometheus is the source that is chosen above the panels.
var prometheus = &source{Type: "prometheus", UID: "${datasource}"}

// render returns the board of some metrics as JSON.
func render(all []*metric.Metric) ([]byte, error) {
	b, err := json.MarshalIndent(board{
		Title: "Holdfast", UID: "holdfast", Tags: []string{"holdfast"}, SchemaVersion: 39, Refresh: "30s",
		Time: timeRange{From: "now-6h", To: "now"},
		Templating: templating{[]variable{
			{Name: "datasource", Label: "Source", Type: "datasource", Query: "prometheus"},
			{Name: "instance", Label: "Instance", Type: "query", Query: "label_values(" + metric.Up.Name + ", instance)",
				Datasource: prometheus, Refresh: 2, Multi: true, IncludeAll: true, AllValue: ".*"},
		}},
		Panels: panels(all),
	}, "", "  ")
	return append(b, '\n'), err
}

// panels returns a panel for each metric, below a heading for each group.
func panels(all []*metric.Metric) (made []panel) {
	group, x, y := "", 0, 0
	for _, m := range all {
		if m.Group != group || x == columns {
			if x > 0 {
				x, y = 0, y+panelHeight
			}
		}
		if m.Group != group {
			group = m.Group
			made = append(made, panel{ID: len(made) + 1, Type: "row", Title: group, GridPos: place{H: 1, W: columns, Y: y}})
			y++
		}
		made = append(made, panel{
			ID: len(made) + 1, Type: "timeseries", Title: title(m), Description: m.Help, Datasource: prometheus,
			GridPos:     place{H: panelHeight, W: panelWidth, X: x, Y: y},
			FieldConfig: &fieldConfig{fieldDefaults{Unit: unit(m)}},
			Targets:     targets(m),
		})
		x += panelWidth
	}
	return made
}

// title is the name of a metric in words.
func title(m *metric.Metric) string {
	name := strings.TrimPrefix(m.Name, metric.Prefix)
	for _, suffix := range []string{"_total", "_timestamp_seconds", "_seconds", "_bytes"} {
		name = strings.TrimSuffix(name, suffix)
	}
	words := strings.ReplaceAll(name, "_", " ")
	words = strings.ToUpper(words[:1]) + words[1:]
	if m.Kind == metric.Counter {
		return words + " per second"
	}
	return words
}

// isTime reports whether the values are seconds since 1970.
func isTime(m *metric.Metric) bool { return strings.HasSuffix(m.Name, "_timestamp_seconds") }

// unit is how Grafana shows the values.
func unit(m *metric.Metric) string {
	switch {
	case isTime(m):
		return "dateTimeFromNow"
	case strings.HasSuffix(m.Name, "_seconds"):
		return "s"
	case strings.HasSuffix(m.Name, "_bytes"):
		return "bytes"
	}
	return "short"
}

// targets are the queries of a metric: the rate of a counter, two quantiles of a histogram, and the
// sum of a gauge, or the greatest if it is a time.
func targets(m *metric.Metric) []target {
	labels := m.Labels
	if len(labels) == 0 {
		labels = []string{"instance"}
	}
	by, legend := strings.Join(labels, ", "), "{{"+strings.Join(labels, "}} {{")+"}}"
	const chosen = `{instance=~"$instance"}`
	if m.Kind == metric.Histogram {
		quantile := func(id, q, name string) target {
			return target{id, fmt.Sprintf("histogram_quantile(%s, sum by (le, %s) (rate(%s_bucket%s[$__rate_interval])))", q, by, m.Name, chosen), name + " " + legend}
		}
		return []target{quantile("A", "0.5", "p50"), quantile("B", "0.99", "p99")}
	}
	of := m.Name + chosen
	joined := "sum"
	switch {
	case m.Kind == metric.Counter:
		of = "rate(" + of + "[$__rate_interval])"
	case isTime(m):
		of, joined = "1000 * "+of, "max" // Grafana counts milliseconds
	case strings.HasSuffix(m.Name, "_seconds"):
		joined = "max"
	}
	return []target{{"A", fmt.Sprintf("%s by (%s) (%s)", joined, by, of), legend}}
}

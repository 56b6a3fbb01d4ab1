package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
)

func figures(t *testing.T, lines string) []figure.Figure {
	t.Helper()
	all, err := figure.Read(strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const lines = `
{"workload":"alarms","n":1000,"value":2,"system":"other"}
{"workload":"alarms","n":1000,"value":0.5,"system":"Holdfast"}
{"workload":"increments","n":1000,"value":30,"system":"other"}
{"workload":"increments","n":1,"value":40,"system":"other"}
{"workload":"increments","n":1,"value":90,"system":"Holdfast"}
{"workload":"increments","n":1,"value":10,"system":"other"}
{"workload":"increments","n":1,"value":20,"system":"other"}
`

// TestTable has medians, and ratios that say how much better ours is, for figures that
// should be high and for those that should be low.
func TestTable(t *testing.T) {
	rows := sum(figures(t, lines))
	want := []struct {
		what, system, better string
		value                float64
		rounds               int
	}{
		{"durable increments, keys: 1", "other", "4.5 ×", 20, 3},
		{"durable increments, keys: 1", "Holdfast", "-", 90, 1},
		{"durable increments, keys: 1,000", "other", "-", 30, 1}, // without ours
		{"1,000 alarms due at once, until the last fired", "other", "4 ×", 2, 1},
		{"1,000 alarms due at once, until the last fired", "Holdfast", "-", 0.5, 1},
	}
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d: %+v", len(rows), len(want), rows)
	}
	for i, w := range want {
		r := rows[i]
		if r.What != w.what || r.Name != w.system || r.Value != w.value || r.Rounds != w.rounds || better(rows, r, "Holdfast") != w.better {
			t.Errorf("%+v %s, want %+v", r, better(rows, r, "Holdfast"), w)
		}
	}
}

// TestPlotForm keeps the names that holdfast-plot reads.
func TestPlotForm(t *testing.T) {
	text, err := json.Marshal(sum(figures(t, lines))[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"what":"durable increments, keys: 1"`, `"system":"Holdfast"`, `"value":90`, `"unit":"/s"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
}

// TestUnsteady warns of a disk that changed, however good the medians.
func TestUnsteady(t *testing.T) {
	const steady = `{"workload":"disk","n":4096,"value":0.0010,"system":"before a"}
{"workload":"disk","n":4096,"value":0.0010,"system":"before a"}
{"workload":"disk","n":4096,"value":0.0014,"system":"before b"}
`
	if w := unsteady(sum(figures(t, steady))); w != "" {
		t.Errorf("a steady disk is warned of: %s", w)
	}
	const once = `{"workload":"disk","n":4096,"value":0.0025,"system":"before a"}`
	if w := unsteady(sum(figures(t, steady+once))); !strings.Contains(w, "2.5 times") {
		t.Errorf("of a disk that changed one is told %q", w)
	}
	if w := unsteady(sum(figures(t, lines))); w != "" {
		t.Errorf("without the disk: %s", w)
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0.01054: "0.0105", 12.345: "12.3", 999.6: "1,000", 1234567: "1,234,567"} {
		if got := number(v); got != want {
			t.Errorf("%v is printed as %s, want %s", v, got, want)
		}
	}
}

package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/rows"
	"github.com/holdfast-dev/holdfast/bench/internal/scale"
)

// write puts the output of f into a file.
func write(t *testing.T, path string, f func(io.Writer) error) {
	t.Helper()
	var b bytes.Buffer
	if err := f(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPlots draws one chart of each kind; each is a picture with the names of its
// lines in it.
func TestPlots(t *testing.T) {
	dir := t.TempDir()
	var results []*rows.Result
	for _, n := range []float64{1024, 64, 1} {
		results = append(results, &rows.Result{
			ID: "P3", What: "durable increments, one object", Size: "callers=1", N: n, Unit: "/s", Against: "the other",
			Ours: measure.Figure{Median: 100 * n}, Reference: &measure.Figure{Median: 120 * n},
		})
	}
	results = append(results, &rows.Result{ID: "P5", What: "alone", Unit: "µs", Ours: measure.Figure{Median: 1}})
	write(t, filepath.Join(dir, "rows.json"), func(w io.Writer) error { return measure.WriteJSON(w, results) })
	write(t, filepath.Join(dir, "scale.json"), func(w io.Writer) error {
		return measure.WriteJSON(w, []*scale.Result{
			{Scenario: "fire", Curves: []scale.Curve{{Name: "alarms fired in a row", X: "alarms", Y: "alarms/s", Points: [][2]float64{{1, 2}, {3, 4}}}}},
			{Scenario: "load", Curves: []scale.Curve{
				{Name: "p99 of holdfast", X: "%", Y: "ms", Points: [][2]float64{{25, 1}, {50, 2}}},
				{Name: "p99 of nothing", X: "%", Y: "ms", Points: [][2]float64{{25, 0.1}, {50, 0.1}}},
			}},
		})
	})
	write(t, filepath.Join(dir, "peers.json"), func(w io.Writer) error {
		_, err := io.WriteString(w, `[{"what":"durable increments, 1 key","system":"Redis, appendfsync always","value":96000,"unit":"/s"},
			{"what":"durable increments, 1 key","system":"Holdfast","value":290000,"unit":"/s"}]`)
		return err
	})
	var out, log bytes.Buffer
	if err := run([]string{"-dir", dir}, &out, &log); err != nil {
		t.Fatal(err)
	}
	for name, texts := range map[string][]string{
		"p3-durable-increments-one-object": {"Holdfast", "the other", "callers"},
		"alarms-fired-in-a-row":            {"alarms/s"},
		"latency-against-load":             {"p99 of holdfast", "p99 of nothing"},
		"peers-durable-increments-1-key":   {"Redis, appendfsync always", "Holdfast"},
	} {
		b, err := os.ReadFile(filepath.Join(dir, "plots", name+".svg"))
		if err != nil {
			t.Error(err)
			continue
		}
		if err := xml.Unmarshal(b, new(struct{ XMLName xml.Name })); err != nil {
			t.Errorf("%s is no XML: %v", name, err)
		}
		for _, text := range texts {
			if !strings.Contains(string(b), text) {
				t.Errorf("%s lacks %q", name, text)
			}
		}
		if !strings.Contains(out.String(), name) {
			t.Errorf("%s was not told of", name)
		}
	}
	if all, err := os.ReadDir(filepath.Join(dir, "plots")); err != nil || len(all) != 4 {
		t.Errorf("%d files, want 4 (a row of one size has no chart): %v", len(all), err)
	}
}

func TestRowsInOrderOfSize(t *testing.T) {
	charts := rowCharts([]*rows.Result{
		{ID: "P7", What: "w", Size: "alarms=100", N: 100, Ours: measure.Figure{Median: 2}},
		{ID: "P7", What: "w", Size: "alarms=10", N: 10, Ours: measure.Figure{Median: 1}},
	})
	if len(charts) != 1 || len(charts[0].lines) != 1 || charts[0].lines[0].points[0][0] != 10 || charts[0].x != "alarms" {
		t.Errorf("%+v", charts)
	}
}

// TestFixedSizes keeps rows apart that differ in a size which the chart is not
// over.
func TestFixedSizes(t *testing.T) {
	var results []*rows.Result
	for _, size := range []string{"objects=1 callers=16", "objects=1 callers=64", "objects=1000 callers=16", "objects=1000 callers=64"} {
		n := 16.0
		if strings.HasSuffix(size, "64") {
			n = 64
		}
		results = append(results, &rows.Result{ID: "P14", What: "adds", Size: size, N: n})
	}
	charts := rowCharts(results)
	if len(charts) != 2 || charts[0].file == charts[1].file {
		t.Errorf("%+v", charts)
	}
}

func TestNothingToDraw(t *testing.T) {
	dir := t.TempDir()
	if err := run([]string{"-dir", dir}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("an empty directory: %v", err)
	}
	write(t, filepath.Join(dir, "rows.json"), func(w io.Writer) error { _, err := io.WriteString(w, "rows"); return err })
	if err := run([]string{"-dir", dir}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "rows.json") {
		t.Errorf("a file without JSON: %v", err)
	}
}

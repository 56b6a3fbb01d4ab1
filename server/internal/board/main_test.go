package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/metric"
	"github.com/holdfast-dev/holdfast/internal/testing/outside"
)

const file = "../../../ops/grafana/holdfast.json"

// stored returns the board of the repository.
func stored(t *testing.T) ([]byte, board) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var b board
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	return text, b
}

// The board of the repository is that of the table of metrics.
func TestBoardIsThatOfTheTable(t *testing.T) {
	text, _ := stored(t)
	made, err := render(metric.All())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, made) {
		t.Error("ops/grafana/holdfast.json is old: run go run ./server/internal/board > ops/grafana/holdfast.json")
	}
	if fewer, err := render(metric.All()[1:]); err != nil || bytes.Equal(fewer, made) {
		t.Errorf("a metric less makes the same board (%v)", err)
	}
}

var asked = regexp.MustCompile(`\bholdfast_\w+`)

// strangers are the panels with queries of metrics that do not exist, and the metrics without a panel.
func strangers(b board) (found []string) {
	missing := map[string]bool{}
	for _, m := range metric.All() {
		missing[m.Names()[0]] = true
	}
	known := func(name string) bool { _, ok := missing[name]; return ok }
	for _, p := range b.Panels {
		if p.Type == "timeseries" && len(p.Targets) == 0 {
			found = append(found, p.Title+" asks for nothing")
		}
		for _, q := range p.Targets {
			for _, name := range asked.FindAllString(q.Expr, -1) {
				if !known(name) {
					found = append(found, p.Title+" asks for "+name)
				}
				missing[name] = false
			}
		}
	}
	for name, lacks := range missing {
		if lacks {
			found = append(found, name+" has no panel")
		}
	}
	slices.Sort(found)
	return found
}

// Each panel asks for metrics that exist, and each metric has a panel.
func TestPanelsAskForMetricsThatExist(t *testing.T) {
	_, b := stored(t)
	if found := strangers(b); len(found) > 0 {
		t.Error(strings.Join(found, "\n"))
	}
	for i := range b.Panels {
		if p := &b.Panels[i]; len(p.Targets) > 0 && strings.Contains(p.Targets[0].Expr, metric.Up.Name) {
			p.Targets[0].Expr = "sum(holdfast_gone)"
		}
	}
	if found := strings.Join(strangers(b), "; "); found != "Up asks for holdfast_gone; holdfast_up has no panel" {
		t.Errorf("of a panel with another metric: %s", found)
	}
}

// No two panels lie over one another, each has an id of its own, and none lies beyond the edge.
func TestPlacesOfPanels(t *testing.T) {
	_, b := stored(t)
	taken, ids := map[place]string{}, map[int]bool{}
	for _, p := range b.Panels {
		if ids[p.ID] || p.GridPos.X+p.GridPos.W > columns {
			t.Errorf("%s has the id %d of another, or the place %+v", p.Title, p.ID, p.GridPos)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := place{X: p.GridPos.X + x, Y: p.GridPos.Y + y}
				if taken[at] != "" {
					t.Fatalf("%s lies over %s", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
	}
}

// Prometheus understands each query.
func TestQueriesAreUnderstood(t *testing.T) {
	promtool := outside.Prometheus(t, "promtool")
	_, b := stored(t)
	var rules strings.Builder
	rules.WriteString("groups:\n- name: board\n  rules:\n")
	for _, p := range b.Panels {
		for _, q := range p.Targets {
			fmt.Fprintf(&rules, "  - record: panel_%d_%s\n    expr: '%s'\n", p.ID, q.RefID, strings.ReplaceAll(q.Expr, "$__rate_interval", "5m"))
		}
	}
	name := filepath.Join(t.TempDir(), "queries.yml")
	if err := os.WriteFile(name, []byte(rules.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "check", "rules", name).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

package harness_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
)

// recorder is a testing.TB that keeps its fatal message.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Helper()             {}
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) Fatalf(format string, args ...any) {
	r.said = fmt.Sprintf(format, args...)
	panic(r)
}

// fatal is the message of a test that ends with Fatalf; empty: it does not.
func fatal(t *testing.T, f func(t testing.TB)) (said string) {
	r := &recorder{TB: t}
	defer func() {
		if v := recover(); v != nil && v != any(r) {
			panic(v)
		}
		said = r.said
	}()
	f(r)
	return ""
}

// reports are the lines of a report file.
func reports(t *testing.T, file string) (all []harness.Report) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var r harness.Report
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

// The environment changes every Exhaust and Check of a run, and each of them
// appends its figures to one file.
func TestOverrides(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report")
	t.Setenv("HOLDFAST_CRASHTEST", "depth=2, budget=100,store=pebble,seed=9,workers=2,report="+file)
	harness.Exhaust(t, func(s *harness.Sim) {
		s.Sometimes("a crash", s.Crashes() > 0 || s.String() != "")
		cartScenario(s)
	}, harness.NoLostAck)
	t.Setenv("HOLDFAST_CRASHTEST", "report="+file)
	harness.Check(t, randomCarts)
	said := fatal(t, func(t testing.TB) {
		harness.Exhaust(t, func(s *harness.Sim) { s.Fatalf("on purpose") })
	})
	mustSay(t, said, "on purpose")

	all := reports(t, file)
	if len(all) != 3 {
		t.Fatalf("%d lines: %v", len(all), all)
	}
	e, c, f := all[0], all[1], all[2]
	if e.Test != t.Name() || e.Kind != "exhaust" || e.Store != "pebble" || e.Seed != 9 || e.Schedules != 100 || e.Pairs == 0 ||
		e.Crashes != e.Schedules+e.Pairs || e.Covered >= 1 || e.Points == 0 || e.Random != 0 || e.SometimesReached != 1 || e.SometimesTotal != 1 ||
		e.VirtualSeconds < float64(e.Schedules)*3600 || e.Seconds <= 0 || e.Failed {
		t.Errorf("Exhaust: %s", e)
	}
	if c.Kind != "check" || c.Store != "map" || c.Random < 5 || c.Crashes == 0 || c.Schedules != 0 || c.VirtualSeconds == 0 || c.Failed {
		t.Errorf("Check: %s", c)
	}
	if !f.Failed {
		t.Errorf("a test that fails: %s", f)
	}
}

// A nonsensical value is refused, and the refusal lists the right ones.
func TestBadOverrides(t *testing.T) {
	for value, want := range map[string]string{
		"dpeth=2":        `there is no key "dpeth"`,
		"depth":          "invalid syntax",
		"depth=3":        "3 is not between 1 and 2",
		"budget=0":       "0 is not between",
		"store=sqlite":   `there is no store "sqlite"`,
		"seed=-1":        "invalid syntax",
		"report=figures": "is not absolute",
		"depth=1,,":      `there is no key ""`,
	} {
		t.Setenv("HOLDFAST_CRASHTEST", value)
		said := fatal(t, func(t testing.TB) { harness.Exhaust(t, cartScenario) })
		mustSay(t, said, "HOLDFAST_CRASHTEST", want, "valid keys", "budget= a number of schedules", "store= map, pebble, log or takeover", "report=")
	}
}

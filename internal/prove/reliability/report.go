package main

import (
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"
)

// report is the result of a run.
type report struct {
	commit  string
	date    time.Time
	seed    uint64
	seconds float64
	extent  extent
	values  values
	steps   []stepTime
}

// stepTime is how long a step took.
type stepTime struct {
	name    string
	seconds float64 // of processor time
}

// MarshalJSON writes the commit, the figures by name, and the seconds of each step.
func (r report) MarshalJSON() ([]byte, error) {
	steps := map[string]float64{}
	for _, s := range r.steps {
		steps[s.name] = rounded(s.seconds)
	}
	all := map[string]any{
		"commit": r.commit, "seed": r.seed, "seconds": rounded(r.seconds), "soak": r.extent == soak, "processor_seconds": steps,
	}
	for _, f := range table {
		all[f.name] = rounded(r.values[f.name])
	}
	return json.Marshal(all)
}

// rounded has at most two places.
func rounded(x float64) float64 { return math.Round(x*100) / 100 }

// missed are the figures of the steps that ran and that are not good.
func (r report) missed(ran func(step string) bool) []string {
	var out []string
	for _, f := range table {
		if ran(f.step) && !f.reached(r.values, r.extent) {
			out = append(out, f.shortfall(r.values, r.extent))
		}
	}
	return out
}

// text is the table of the steps that ran.
func (r report) text(ran func(step string) bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "commit %s, %s, %s, seed %d\n\n", r.commit, r.date.Format("2 January 2006"), machine(), r.seed)
	for _, f := range table {
		if !ran(f.step) {
			continue
		}
		state := "ok"
		if !f.reached(r.values, r.extent) {
			state = "MISSED"
		}
		fmt.Fprintf(&b, "  %-6s  %-17s %12s  %-13s %s\n", state, f.name, number(r.values[f.name]), f.wanted(r.values, r.extent), f.about)
	}
	fmt.Fprintf(&b, "\n  %.0f s in all; seconds of processor time:", r.seconds)
	for _, s := range r.steps {
		fmt.Fprintf(&b, " %s %.0f", s.name, s.seconds)
	}
	return b.String() + "\n"
}

// machine tells of the machine in general words.
func machine() string {
	name := map[string]string{"linux": "Linux", "darwin": "macOS", "windows": "Windows"}[runtime.GOOS]
	if name == "" {
		name = runtime.GOOS
	}
	return fmt.Sprintf("%d cores, %s, %s", runtime.NumCPU(), name, runtime.Version())
}

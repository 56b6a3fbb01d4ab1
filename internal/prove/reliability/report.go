package main

import (
	"bytes"
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

// MarshalJSON writes the fields in the order of the table, which is part of the
// format: commit, seed, seconds, the figures, and then the seconds of each step.
func (r report) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"commit":%q,"seed":%d,"seconds":%s`, r.commit, r.seed, plain(r.seconds))
	for _, f := range table {
		fmt.Fprintf(&b, `,%q:%s`, f.name, plain(r.values[f.name]))
	}
	fmt.Fprintf(&b, `,"soak":%t,"processor_seconds":{`, r.extent == soak)
	for i, s := range r.steps {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `%q:%s`, s.name, plain(s.seconds))
	}
	b.WriteString("}}")
	return b.Bytes(), nil
}

// plain writes a number with at most two places.
func plain(x float64) string {
	b, err := json.Marshal(math.Round(x*100) / 100)
	if err != nil {
		return "0"
	}
	return string(b)
}

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

// text is the table for a terminal.
func (r report) text(ran func(step string) bool) string {
	var b strings.Builder
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
	return b.String()
}

// markdown is the table for out/reliability.md.
func (r report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Reliability\n\nCommit `%s`, %s, %s, seed %d, %s.\n\n", r.commit, r.date.Format("2 January 2006"), machine(), r.seed,
		(time.Duration(r.seconds) * time.Second).String())
	b.WriteString("| figure | value | floor | counts |\n|---|---|---|---|\n")
	for _, f := range table {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, number(r.values[f.name]), f.wanted(r.values, r.extent), f.about)
	}
	return b.String()
}

// machine tells of the machine in general words.
func machine() string {
	name := map[string]string{"linux": "Linux", "darwin": "macOS", "windows": "Windows"}[runtime.GOOS]
	if name == "" {
		name = runtime.GOOS
	}
	return fmt.Sprintf("%d cores, %s, %s", runtime.NumCPU(), name, runtime.Version())
}

// times is where the time went.
func (r report) times() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %.0f s in all; seconds of processor time:", r.seconds)
	for _, s := range r.steps {
		fmt.Fprintf(&b, " %s %.0f", s.name, s.seconds)
	}
	b.WriteByte('\n')
	return b.String()
}

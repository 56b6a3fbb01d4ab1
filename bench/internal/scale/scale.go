// Package scale runs the scenarios of a large store: many objects, alarms, tasks and
// jobs, and the latency of calls meanwhile.
package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
)

// Options say how large and how long.
type Options struct {
	Dir string // for all that is stored; the caller removes it
	// Percent of the full sizes: 10M objects and alarms, 1M tasks, 100,000 jobs.
	Percent float64
	// Tasks is how many tasks the scenario looks has. Zero: a tenth of its objects.
	Tasks int
	// For is how long each load lasts.
	For time.Duration
	// Period is the time between two runs of a continuous job.
	Period time.Duration
}

// of is the part of a full size, at least least.
func (o Options) of(full, least int) int { return max(int(float64(full)*o.Percent/100), least) }

// Figure is one thing that a scenario measured.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Bound string  `json:"bound,omitempty"` // its limit; empty: none
	Held  bool    `json:"held"`            // true if nothing was asked
}

// Curve is a figure over another.
type Curve struct {
	Name   string       `json:"name"`
	X      string       `json:"x"`
	Y      string       `json:"y"`
	Points [][2]float64 `json:"points"`
}

// Result is the result of a scenario: an element of the JSON.
type Result struct {
	Scenario string   `json:"scenario"`
	What     string   `json:"what"`
	Seconds  float64  `json:"seconds"`
	Figures  []Figure `json:"figures"`
	Curves   []Curve  `json:"curves,omitempty"`
	Notes    []string `json:"notes,omitempty"`
}

// figure adds a figure of which nothing is asked.
func (r *Result) figure(name string, value float64, unit string) {
	r.Figures = append(r.Figures, Figure{name, value, unit, "", true})
}

// check adds a figure that is bounded.
func (r *Result) check(name string, value float64, unit, bound string, held bool) {
	r.Figures = append(r.Figures, Figure{name, value, unit, bound, held})
}

func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Held reports whether all bounds held.
func (r *Result) Held() bool {
	return !slices.ContainsFunc(r.Figures, func(f Figure) bool { return !f.Held })
}

// Scenario is one of those that Run runs.
type Scenario struct {
	Name, What string
	run        func(ctx context.Context, o Options, r *Result)
}

// Scenarios are all of them.
var Scenarios = []Scenario{
	{"large", "10M objects with armed alarms: open, call, arm, fire, list, inspect, delete, scrub, eviction churn", large},
	{"fire", "10M overdue alarms fired in a row", fireAll},
	{"overdue", "calls while 1M overdue alarms fire after open", overdue},
	{"keys", "1M tasks over 100,000 keys, one at a time and in order each; a hot key", keys},
	{"fair", "weights and priorities of a saturated pool", fair},
	{"debounce", "adds at random to 100,000 debounce objects", debounced},
	{"continuous", "100,000 continuous jobs, each once a period", continuously},
	{"looks", "each list, page, inspect and why of the server over 10M objects, 1M tasks and 100,000 jobs, beside callers", looks},
	{"load", "latency of durable calls at 25, 50, 75 and 90 % of the most there can be", load},
}

// Choose returns the scenarios of those names, with commas between; empty means
// all.
func Choose(names string) ([]Scenario, error) {
	if names == "" {
		return Scenarios, nil
	}
	var chosen []Scenario
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(Scenarios, func(s Scenario) bool { return s.Name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("scenario %q: see -h", name)
		}
		chosen = append(chosen, Scenarios[i])
	}
	return chosen, nil
}

// Run runs one scenario in a directory of its own, which it removes. Results before an
// error are returned with it.
func (s Scenario) Run(ctx context.Context, o Options) (*Result, error) {
	r := &Result{Scenario: s.Name, What: s.What}
	dir, err := os.MkdirTemp(o.Dir, s.Name+"-")
	if err != nil {
		return r, err
	}
	o.Dir = dir
	start := time.Now()
	err = s.caught(ctx, o, r)
	r.Seconds = time.Since(start).Seconds()
	if err != nil {
		err = fmt.Errorf("%s: %w", s.Name, err)
	}
	return r, errors.Join(err, os.RemoveAll(dir))
}

// caught runs the scenario until it ends or fails.
func (s Scenario) caught(ctx context.Context, o Options, r *Result) (err error) {
	defer fail.Caught(&err)
	s.run(ctx, o, r)
	return nil
}

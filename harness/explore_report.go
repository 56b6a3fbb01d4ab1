package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Report counts the runs of one Explore, Exhaust, Check or Fuzz.
type Report struct {
	Test  string `json:"test,omitempty"` // its name; empty for Explore
	Kind  string `json:"kind"`           // exhaust, check or fuzz
	Store string `json:"store"`          // map, pebble, log or takeover
	Seed  uint64 `json:"seed"`

	Points     int            `json:"points"`            // of the run without a crash
	ByName     map[string]int `json:"by_name,omitempty"` // points of the run without a crash
	Schedules  int            `json:"schedules"`         // runs with one crash or fault, or two
	Pairs      int            `json:"pairs"`             // those with two
	InRecovery int            `json:"in_recovery"`       // planned crashes before the process was ready again
	Covered    float64        `json:"covered"`           // fraction of all schedules that were run; 1 where none are counted
	Random     int            `json:"random"`            // schedules run by Check or Fuzz

	Crashes          int            `json:"crashes"`           // of all runs, those by hand too
	Faults           map[string]int `json:"faults,omitempty"`  // that took place, by kind
	SometimesReached int            `json:"sometimes_reached"` // names of Sometimes that held in a run
	SometimesTotal   int            `json:"sometimes_total"`   // names of Sometimes
	VirtualSeconds   float64        `json:"virtual_seconds"`   // simulated, of all runs
	Seconds          float64        `json:"seconds"`           // that it took
	Failed           bool           `json:"failed"`

	// CallsBeforeCommit is warnings, one for each pair of methods; see NoCallBeforeCommit.
	CallsBeforeCommit []CallBeforeCommit `json:"calls_before_commit,omitempty"`
}

// String is the report as one line of JSON.
func (r Report) String() string {
	b, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// record appends r to the file that the environment names, if it names one. One
// write appends it, so that tests of several processes may share the file.
func (c *Config) record(t testing.TB, r Report) {
	t.Helper()
	if c.reportFile == "" {
		return
	}
	r.Test = t.Name()
	f, err := os.OpenFile(c.reportFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Errorf("harness: report: %v", err)
		return
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, r); err != nil {
		t.Errorf("harness: report: %v", err)
	}
}

// tally adds up runs. Workers may share it.
type tally struct {
	mu        sync.Mutex // guards the fields below while workers run
	report    Report
	sometimes map[string]bool
	calls     callsBefore
}

func newTally(c *Config, kind string) *tally {
	return &tally{
		report:    Report{Kind: kind, Store: c.store, Seed: c.seed, Covered: 1},
		sometimes: make(map[string]bool),
	}
}

// note counts a run.
func (t *tally) note(out outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &t.report
	if n := len(out.crashedAt) + len(out.struckAt); n > 0 {
		r.Schedules++
		if n > 1 {
			r.Pairs++
		}
	}
	for _, i := range out.crashedAt {
		if out.hits[i].booting {
			r.InRecovery++
		}
	}
	for kind, n := range out.faults {
		if r.Faults == nil {
			r.Faults = make(map[string]int)
		}
		r.Faults[string(kind)] += n
	}
	r.Crashes += out.crashes
	r.VirtualSeconds += out.virtual.Seconds()
	for name, ok := range out.sometimes {
		t.sometimes[name] = t.sometimes[name] || ok
	}
	for _, c := range out.calls {
		t.calls.add(c)
	}
	if out.problem != nil {
		r.Failed = true
	}
}

// total is the report of all runs.
func (t *tally) total() Report {
	r := t.report
	r.CallsBeforeCommit = t.calls.list()
	r.SometimesTotal, r.SometimesReached = len(t.sometimes), 0
	for _, ok := range t.sometimes {
		if ok {
			r.SometimesReached++
		}
	}
	return r
}

package harness

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Check runs a property over random crashes. It draws from rt the number of crashes,
// the points between them, the commits that survive each, the faults, and the order of
// tasks. The property may draw from rt too, and all of it shrinks. The flag
// -rapid.checks says how many schedules it runs; the default is 100. Each run of go
// test draws others, and a failure prints the flag -rapid.seed that repeats it. For a
// test that does the same in each run, set that flag, or the environment variable
// RAPID_SEED, to a number other than 0.
func Check(t testing.TB, property func(s *Sim, rt *rapid.T), opts ...Option) {
	t.Helper()
	tr := newTrials(t, "check", opts)
	defer tr.record() // also when rapid ends the test
	rapid.Check(t, func(rt *rapid.T) {
		tr.try(rt, func(s *Sim) { property(s, rt) })
	})
}

// trials are the runs that rapid draws.
type trials struct {
	t      testing.TB
	sum    *tally
	runner *runner
	began  time.Time
}

func newTrials(t testing.TB, kind string, opts []Option) *trials {
	t.Helper()
	c := testConfig(t, opts)
	return &trials{t: t, sum: newTally(c, kind), runner: &runner{cfg: c, passPanics: true}, began: time.Now()}
}

// try runs the scenario once, and ends the test of rt if it fails.
func (tr *trials) try(rt *rapid.T, scenario Scenario) {
	r := tr.runner
	r.random, r.scenario = newDrawn(rt), scenario
	seed := rapid.Uint64Range(0, 1000).Draw(rt, "schedule")
	var out outcome
	if err := r.guard(func() { out = r.run(schedule{seed: seed}) }); err != nil {
		tr.runner = &runner{cfg: r.cfg, passPanics: true} // a task of this one may run on
		rt.Fatalf("%v", r.wrap(err))
	}
	tr.sum.report.Random++
	tr.sum.note(out)
	if out.problem != nil {
		rt.Fatalf("%v", out.problem)
	}
}

// record appends the figures of all runs to the file that the environment names.
func (tr *trials) record() {
	if tr.sum.report.Random == 0 && !tr.t.Failed() {
		return // the process that coordinates fuzzing runs nothing itself
	}
	r := tr.sum.total()
	r.Seconds, r.Failed = time.Since(tr.began).Seconds(), tr.t.Failed()
	tr.runner.cfg.record(tr.t, r)
}

package harness

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Check runs a property over random crashes: how many there are, after how many
// points each comes, what survives it and in which order tasks run are drawn
// from rt, beside whatever the property draws for itself, and all of it shrinks.
// How many schedules it runs is for rapid's flag -rapid.checks to say.
func Check(t testing.TB, property func(s *Sim, rt *rapid.T), opts ...Option) {
	t.Helper()
	c := testConfig(t, opts)
	sum := newTally(c, "check")
	began := time.Now()
	defer func() { // also when rapid ends the test
		r := sum.total()
		r.Seconds, r.Failed = time.Since(began).Seconds(), t.Failed()
		c.record(t, r)
	}()
	rapid.Check(t, func(rt *rapid.T) {
		r := &runner{cfg: c, passPanics: true}
		r.random = newDrawn(rt)
		r.scenario = func(s *Sim) { property(s, rt) }
		seed := rapid.Uint64Range(0, 1000).Draw(rt, "schedule")
		var out outcome
		if err := r.guard(func() { out = r.run(plan{seed: seed}) }); err != nil {
			rt.Fatalf("%v", r.wrap(err))
		}
		sum.report.Random++
		sum.note(out)
		if out.problem != nil {
			rt.Fatalf("%v", out.problem)
		}
	})
}

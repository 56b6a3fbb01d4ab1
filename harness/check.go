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
func Check(t *testing.T, property func(s *Sim, rt *rapid.T), opts ...Option) {
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
		r.random = drawCrashes(rt)
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

// randomCrashes is a plan that counts points instead of naming them.
type randomCrashes struct {
	gaps  []int // points passed before each crash
	keeps []int // commits that survive it, if there are as many
	left  int   // of the present gap
}

func drawCrashes(rt *rapid.T) *randomCrashes {
	const most, points, commits = 3, 300, 8
	n := rapid.IntRange(0, most).Draw(rt, "crashes")
	c := &randomCrashes{}
	for range n {
		c.gaps = append(c.gaps, rapid.IntRange(0, points).Draw(rt, "after points"))
		c.keeps = append(c.keeps, rapid.IntRange(0, commits).Draw(rt, "keep"))
	}
	if n > 0 {
		c.left = c.gaps[0]
	}
	return c
}

// next counts a point, and reports whether the process dies there.
func (c *randomCrashes) next() (keep int, dies bool) {
	if len(c.gaps) == 0 {
		return 0, false
	}
	if c.left > 0 {
		c.left--
		return 0, false
	}
	keep = c.keeps[0]
	c.gaps, c.keeps = c.gaps[1:], c.keeps[1:]
	if len(c.gaps) > 0 {
		c.left = c.gaps[0]
	}
	return keep, true
}

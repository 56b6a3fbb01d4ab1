package debounce_test

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
)

// drawConfig draws a definition.
func drawConfig(rt *rapid.T) config {
	c := config{MaxEvents: rapid.SampledFrom([]int{0, 1, 2, 3}).Draw(rt, "maxEvents")}
	if rapid.Bool().Draw(rt, "window") {
		c.Mode, c.Window = debounce.Window, seconds(5)
	} else {
		c.Quiet, c.MaxWait = seconds(3), seconds(rapid.SampledFrom([]int{0, 4}).Draw(rt, "maxWait"))
	}
	if rapid.Bool().Draw(rt, "reduce") {
		c.Reduce = collect
	}
	c.Retry = jobs.Retry{MaxAttempts: 10, Backoff: jobs.Constant(seconds(2))}
	return c
}

// Proves D1 to D4 for random histories: adds with repeated ids, requests, pauses,
// failing flushes and crashes.
func TestRandomHistories(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, rt *rapid.T) {
		l := newLedger(s, drawConfig(rt))
		failEvery := rapid.SampledFrom([]uint64{0, 2, 3}).Draw(rt, "failEvery")
		l.fail = func(f *flush) error {
			if failEvery > 0 && f.Attempt <= 2 && f.Generation%failEvery == 0 {
				return errors.New("not yet")
			}
			return nil
		}
		l.add("first")
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			l.step(rapid.IntRange(0, 9).Draw(rt, "step"), rt)
		}
		_ = l.retry(l.job.Resume) // if it is paused
		s.Advance(seconds(60))
	}, checks...)
}

func (l *ledger) step(n int, rt *rapid.T) {
	switch {
	case n < 5:
		l.add(fmt.Sprintf("event %d", rapid.IntRange(0, 9).Draw(rt, "id")))
	case n < 8:
		l.s.Advance(seconds(rapid.IntRange(0, 6).Draw(rt, "seconds")))
	case n == 8:
		if err := l.flushNow(); err != nil && !errors.Is(err, jobs.ErrIllegalMove) {
			l.s.Errorf("FlushNow: %v", err)
		}
	case rapid.Bool().Draw(rt, "pause"):
		_ = l.retry(l.job.Pause)
	default:
		_ = l.retry(l.job.Resume)
	}
}

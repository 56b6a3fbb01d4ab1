package workflow

import (
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Codes of Status.Why. Those of a workflow alone begin with "wf-"; the others are those of all jobs.
const (
	whyEnded     = "ended"
	whyPaused    = "paused"
	whyExecuting = "executing"
	whyStuck     = "wf-stuck"
	whyQueued    = "wf-queued"
	whyBlocked   = "wf-blocked"
	whyStep      = "wf-step"
	whySignal    = "wf-signal"
	whyTimer     = "wf-timer"
	whyChild     = "wf-child"
	whyBreaker   = "wf-breaker"
)

// waitCodes are the kinds of waits with their codes, in the order in which they count.
var waitCodes = []struct{ kind, code string }{
	{waitSignal, whySignal}, {waitSleep, whyTimer}, {waitChild, whyChild}, {waitBreaker, whyBreaker}, {waitRetry, whyStep},
}

// why returns the code for a status that has all other fields. It depends on stored rows alone,
// but for blocked and the fields of an executing run.
func (s *Status) why(now time.Time, blocked bool) string {
	switch m := &s.Meta; {
	case m.Status.Ended():
		return whyEnded
	case m.Status == jobs.Paused:
		return whyPaused
	case m.Status == jobs.Stuck:
		return whyStuck
	case m.Status == jobs.Running && !s.Due.IsZero() && !s.Due.After(now):
		return whyQueued
	case blocked:
		return whyBlocked
	case len(s.Steps) > 0:
		return whyStep
	}
	for _, c := range waitCodes {
		for _, w := range s.Waits {
			if w.Kind == c.kind {
				return c.code
			}
		}
	}
	return whyExecuting
}

package workflow

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Proves F15: the code is the first that holds. All but a step under way and a blocked scope are
// found from the stored rows alone: the status, the waits and the time of the next wake-up.
func TestWhy(t *testing.T) {
	now := time.Unix(1000, 0)
	wait := func(kinds ...string) (waits []Wait) {
		for _, k := range kinds {
			waits = append(waits, Wait{Kind: k})
		}
		return waits
	}
	meta := func(s jobs.Status) jobs.Meta { return jobs.Meta{Status: s} }
	step := []UnderWay{{Step: "a"}}
	for _, c := range []struct {
		s       Status
		blocked bool
		want    string
	}{
		{Status{Meta: meta(jobs.Completed)}, false, "ended"},
		{Status{Meta: meta(jobs.Failed)}, false, "ended"},
		{Status{Meta: meta(jobs.Cancelled)}, false, "ended"},
		{Status{Meta: meta(jobs.Paused), Due: now}, false, "paused"},
		{Status{Meta: meta(jobs.Stuck)}, false, "wf-stuck"},
		{Status{Meta: meta(jobs.Stuck), Due: now.Add(time.Minute), Waits: wait("signal")}, false, "wf-stuck"},
		{Status{Meta: meta(jobs.Running), Due: now, Waits: wait("signal")}, false, "wf-queued"},
		{Status{Meta: meta(jobs.Running), Due: now.Add(-time.Hour)}, false, "wf-queued"},
		{Status{Meta: meta(jobs.Running), Due: now.Add(1), Waits: wait("sleep")}, false, "wf-timer"},
		{Status{Meta: meta(jobs.Running), Due: now.Add(1), Waits: wait("each", "retry", "child", "sleep", "signal")}, false, "wf-signal"},
		{Status{Meta: meta(jobs.Running), Due: now.Add(1), Waits: wait("each", "retry", "child", "sleep")}, false, "wf-timer"},
		{Status{Meta: meta(jobs.Running), Waits: wait("each", "retry", "child")}, false, "wf-child"},
		{Status{Meta: meta(jobs.Running), Waits: wait("breaker", "child")}, false, "wf-child"},
		{Status{Meta: meta(jobs.Running), Due: now.Add(1), Waits: wait("each", "retry", "breaker")}, false, "wf-breaker"},
		{Status{Meta: meta(jobs.Running), Due: now.Add(1), Waits: wait("each", "retry")}, false, "wf-step"},
		{Status{Meta: meta(jobs.Executing), Steps: step, Waits: wait("each", "signal")}, false, "wf-step"},
		{Status{Meta: meta(jobs.Executing), Steps: step, Waits: wait("each", "signal")}, true, "wf-blocked"},
		{Status{Meta: meta(jobs.Executing), Waits: wait("each", "signal")}, false, "wf-signal"},
		{Status{Meta: meta(jobs.Executing), Waits: wait("each")}, false, "executing"},
		{Status{Meta: meta(jobs.Executing)}, false, "executing"},
		{Status{Meta: meta(jobs.Stuck)}, true, "wf-stuck"},
	} {
		if got := c.s.why(now, c.blocked); got != c.want {
			t.Errorf("%+v, blocked %t: %s, want %s", c.s, c.blocked, got, c.want)
		}
	}
}

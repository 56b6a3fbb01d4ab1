package continuous_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
)

// Proves J5, R3: a job without a schedule rests without an alarm until it is triggered,
// also with a crash at any point. NeverOrphaned distinguishes it from a job that lost its
// alarm.
func TestTriggeredJobIsNoOrphan(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Minute)
		s.OK(s.Retry(func() error { return j.Trigger(s.Context(), s, "a") }))
		s.Advance(time.Minute)
		st, state := know(s, j, "a")
		counted(s, st, state, s.Crashes())
		s.Always("it has run, and nothing is due", st.Meta.RunCount >= 2 && st.Due.IsZero(), st)
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}

// Proves C1: a definition tells whether its jobs run by themselves.
func TestScheduled(t *testing.T) {
	for _, c := range []struct {
		schedule jobs.Schedule
		want     bool
	}{{jobs.Schedule{}, false}, {jobs.Every(time.Hour), true}, {jobs.Rate(time.Hour), true}, {jobs.Cron("@daily", ""), true}} {
		if got := continuous.New(continuous.Config[int]{Name: "j", Schedule: c.schedule}).Scheduled(); got != c.want {
			t.Errorf("%+v: %t", c.schedule, got)
		}
	}
}

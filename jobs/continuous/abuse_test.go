package continuous_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// huge is longer than any value that can be stored.
var huge = strings.Repeat("x", 5<<20)

// An error longer than any value is cut where it is stored, and the job goes on.
// Regression: the end of the execution could not be stored, so that the job was
// executing until its lease ended, again and again.
func TestHugeError(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		fail := true
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour), Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Second)},
			Run: func(context.Context, *continuous.Run[tally]) error {
				if fail {
					return errors.New(huge)
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Minute)
		st, _ := know(s, j, "a")
		s.Always("the failure is counted, and its error cut", st.Meta.Failures == 1 && len(st.Meta.LastError) == engine.MaxTextBytes, st.Meta.Failures, len(st.Meta.LastError))
		sameLines(s, "events", history(s, j, "a"), "created 0/0", "start 1/1", "failure 1/1", "retry 1/1", "start 1/2", "failure 1/2", "exhausted 1/2 attempts")
		fail = false
		s.Advance(time.Hour)
		st, _ = know(s, j, "a")
		s.Always("the next run succeeds", st.Meta.RunCount == 1, st.Meta)
	})
}

// The reason for a stop is cut too, whether a run gives it or a caller.
func TestHugeReason(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(time.Hour), Run: func(_ context.Context, run *continuous.Run[tally]) error {
			run.Stop(huge)
			return nil
		}})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Minute)
		st, _ := know(s, j, "a")
		s.Always("stopped by the run", st.Meta.Status == jobs.Stopped && len(st.Meta.StopReason) == engine.MaxTextBytes, st.Meta.Status, len(st.Meta.StopReason))
		s.OK(j.Resume(s.Context(), s, "a"))
		s.OK(j.Stop(s.Context(), s, "a", huge))
		st, _ = know(s, j, "a")
		s.Always("stopped by a caller", st.Meta.Status == jobs.Stopped && len(st.Meta.StopReason) == engine.MaxTextBytes, st.Meta.Status, len(st.Meta.StopReason))
		s.OK(j.Terminate(s.Context(), s, "a", huge))
	})
}

// A run may choose any time for the next one. Regression: one after the year 9999
// could not be stored, and one after 2262 was taken for one long ago.
func TestFarTimes(t *testing.T) {
	for _, at := range []time.Time{
		time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		harness.Run(t, func(s *harness.Sim) {
			j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(time.Minute), Run: func(_ context.Context, run *continuous.Run[tally]) error {
				run.NextAt(at)
				return nil
			}})
			s.Host(j)
			start(s, j, "a")
			s.Advance(24 * time.Hour)
			st, _ := know(s, j, "a")
			s.Always("it ran once and waits", st.Meta.RunCount == 1 && st.Meta.Status == jobs.Running && st.Meta.NextAt.Year() >= 2262, st.Meta)
			s.OK(j.Trigger(s.Context(), s, "a"))
			s.Advance(time.Minute)
			st, _ = know(s, j, "a")
			s.Always("it still runs when asked to", st.Meta.RunCount == 2, st.Meta)
		})
	}
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(time.Hour), Run: func(_ context.Context, run *continuous.Run[tally]) error {
			if run.Number == 1 {
				run.NextAt(time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC))
			}
			return nil
		}})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Minute)
		st, _ := know(s, j, "a")
		s.Always("a time long ago means at once", st.Meta.RunCount == 2, st.Meta)
	})
}

// The longest period that a Duration holds does not overflow, and runs no earlier.
func TestLongestPeriod(t *testing.T) {
	for _, schedule := range []jobs.Schedule{jobs.Every(1<<63 - 1), jobs.Rate(1<<63 - 1), jobs.Rate(time.Millisecond).WithJitter(1<<63 - 1)} {
		harness.Run(t, func(s *harness.Sim) {
			j := ticking(s, continuous.Config[tally]{Schedule: schedule, StartLater: true})
			s.Host(j)
			start(s, j, "a")
			s.Advance(24 * time.Hour)
			st, _ := know(s, j, "a")
			s.Always("it waits", st.Meta.RunCount == 0 && st.Meta.Status == jobs.Running, schedule, st.Meta)
		})
	}
}

// A cron table that matches no day is refused where it is defined. One that matches
// rarely is accepted, and has a next time for ever.
func TestCronThatNeverFires(t *testing.T) {
	if err := jobs.Cron("0 0 30 2 *", "").Validate(); !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), "no day matches") {
		t.Errorf("30 February: %v", err)
	}
	for _, rare := range []string{"0 0 29 2 *", "0 0 29 2 1"} { // and then on a Monday only
		schedule := jobs.Cron(rare, "")
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for at.Year() < 2200 {
			next := schedule.Next(jobs.StartCursor(at))
			if next.IsZero() || next.Month() != time.February || next.Day() != 29 {
				t.Fatalf("%s: after %v comes %v", rare, at, next)
			}
			at = next
		}
	}
}

// hostile names that are allowed, and some that are not.
var (
	hostile = []string{"\x00", "a\x00b", "..", "/", "a/b/../c", "\n", "\r\n\x1b[2J", "%s%d%!", strings.Repeat("n", 1024), "\u202e", "x/", "m/", "'\"`;--"}
	refused = []string{"", "\xff\xfe", "a\xc3", strings.Repeat("n", 1025)}
)

// Proves O1 for jobs: each id that is a name works in every verb, and each other is
// refused by every verb, without leaving anything behind.
func TestHostileIDs(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(time.Hour)})
		s.Host(j)
		for _, id := range hostile {
			start(s, j, id)
		}
		s.Advance(90 * time.Minute)
		for _, id := range hostile {
			st, state := know(s, j, id)
			s.Always("it ran twice", st.Meta.ID == id && state.Runs == 2, id, st.Meta)
			sameLines(s, "events of "+id, history(s, j, id), "created 0/0", "start 1/1", "success 1/1", "start 2/1", "success 2/1")
			s.OK(j.Terminate(s.Context(), s, id, "enough"))
		}
		for _, id := range refused {
			_, startErr := j.Start(s.Context(), s, id, tally{})
			_, statusErr := j.Status(s.Context(), s, id)
			_, stateErr := j.State(s.Context(), s, id)
			for _, err := range []error{
				startErr, statusErr, stateErr, j.Trigger(s.Context(), s, id), j.Pause(s.Context(), s, id), j.Resume(s.Context(), s, id),
				j.Stop(s.Context(), s, id, ""), j.Terminate(s.Context(), s, id, ""),
			} {
				s.Always("refused", errors.Is(err, object.ErrBadName), id, err)
			}
		}
	})
}

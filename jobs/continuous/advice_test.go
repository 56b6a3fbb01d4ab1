package continuous_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves J14, Case JB4: a permanent error ends a run with attempts left, whichever
// package has made it.
func TestPermanentError(t *testing.T) {
	for name, permanent := range map[string]func(error) error{"jobs": jobs.Permanent, "object": object.Permanent} {
		t.Run(name, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				j := ticking(s, continuous.Config[tally]{
					Schedule: jobs.Every(time.Hour), Retry: jobs.Retry{MaxAttempts: 5, RetryIf: func(error) bool { return true }},
					Run: func(context.Context, *continuous.Run[tally]) error {
						return fmt.Errorf("wrapped: %w", permanent(errors.New("boom")))
					},
				})
				s.Host(j)
				start(s, j, "a")
				s.Advance(time.Minute)
				st, _ := know(s, j, "a")
				s.Always("given up at once", st.Meta.Failures == 1 && st.Meta.LastError == "wrapped: boom", st.Meta)
				sameLines(s, "events", history(s, j, "a"), "created 0/0", "start 1/1", "failure 1/1", "exhausted 1/1 permanent")
			})
		})
	}
}

// Proves J14: RetryAfter moves the next attempt, exactly, and no other; the attempt
// counts, and MaxElapsed holds.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		name       string
		maxElapsed time.Duration
		want       []string
	}{
		{"within", 5 * time.Minute, []string{"start 1/1", "failure 1/1", "retry 1/1", "start 1/2", "failure 1/2", "exhausted 1/2 attempts"}},
		{"beyond", 5*time.Minute - 1, []string{"start 1/1", "failure 1/1", "exhausted 1/1 duration"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				var began []time.Time
				j := ticking(s, continuous.Config[tally]{
					Schedule: jobs.Every(time.Hour), Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Second), MaxElapsed: c.maxElapsed},
					Run: func(context.Context, *continuous.Run[tally]) error {
						began = append(began, s.Now())
						return jobs.RetryAfter(5*time.Minute, errors.New("busy"))
					},
				})
				s.Host(j)
				start(s, j, "a")
				s.Advance(10 * time.Minute)
				if len(began) == 2 {
					s.Always("five minutes", began[1].Sub(began[0]) == 5*time.Minute, began)
				}
				sameLines(s, "events", history(s, j, "a"), append([]string{"created 0/0"}, c.want...)...)
			})
		})
	}
}

// Proves J14, Case JB5: a run that is snoozed is run again after the wait as the
// same run with the same attempt, however often, also over restarts; its state is
// dropped, the wait is no part of MaxElapsed, and a later failure is its first.
func TestSnoozedRunGoesOn(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		var seen []continuous.Run[tally]
		var began []time.Time
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(1000 * time.Hour),
			Retry:    jobs.Retry{MaxAttempts: 3, MaxElapsed: time.Minute, Backoff: jobs.Constant(time.Second)},
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				seen, began = append(seen, *run), append(began, s.Now())
				switch len(seen) {
				case 1, 2, 3, 5:
					return jobs.Snooze(time.Hour)
				case 4, 6:
					return errors.New("boom")
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Minute)
		st, _ := know(s, j, "a")
		s.Always("it waits", st.Meta.Status == jobs.Running && st.Meta.Attempt == 0 && st.Meta.LastError == "" && st.Due.Equal(began[0].Add(time.Hour)), st)
		s.Restart()
		s.Advance(5 * time.Hour)
		s.Always("seven executions", len(seen) == 7, seen)
		for i, run := range seen {
			attempt := []int{1, 1, 1, 1, 2, 2, 3}[i]
			s.Always("one run", run.Number == 1 && run.Key == seen[0].Key && run.Attempt == attempt && !run.Recovering && run.State.Runs == 1, i, run)
			if i > 0 {
				wait := time.Hour
				if i == 4 || i == 6 {
					wait = time.Second
				}
				s.Always("the wait", began[i].Sub(began[i-1]) == wait, i, began)
			}
		}
		st, _ = know(s, j, "a")
		s.Always("done", st.Meta.RunCount == 1 && st.Meta.Failures == 0, st.Meta)
		sameLines(s, "events", history(s, j, "a"), "created 0/0", "start 1/1", "snooze 1/1", "start 1/1", "snooze 1/1", "start 1/1", "snooze 1/1",
			"start 1/1", "failure 1/1", "retry 1/1", "start 1/2", "snooze 1/2", "start 1/2", "failure 1/2", "retry 1/2", "start 1/3", "success 1/3")
	})
}

// A run that panics with a snooze has failed, and so has one that snoozes after its time
// is used up. A pause holds a snoozed run until the job is resumed.
func TestSnoozeAtItsLimits(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		var how func(ctx context.Context) error
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(1000 * time.Hour), Timeout: time.Minute,
			Run: func(ctx context.Context, _ *continuous.Run[tally]) error { return how(ctx) },
		})
		s.Host(j)
		how = func(context.Context) error { panic(jobs.Snooze(time.Hour)) }
		start(s, j, "panic")
		s.Advance(time.Minute)
		st, _ := know(s, j, "panic")
		s.Always("a panic has failed", st.Meta.Failures == 1, st.Meta)

		how = func(context.Context) error { s.Sleep(2 * time.Minute); return jobs.Snooze(time.Hour) }
		start(s, j, "late")
		s.Advance(3 * time.Minute)
		st, _ = know(s, j, "late")
		s.Always("a timeout has failed", st.Meta.Failures == 1, st.Meta)

		how = func(context.Context) error { s.Sleep(time.Second); return jobs.Snooze(-time.Hour) }
		start(s, j, "paused")
		s.OK(j.Pause(s.Context(), s, "paused"))
		s.Advance(time.Minute)
		st, _ = know(s, j, "paused")
		s.Always("paused", st.Meta.Status == jobs.Paused && st.Due.IsZero(), st)
		how = func(context.Context) error { return nil }
		s.OK(j.Resume(s.Context(), s, "paused"))
		s.Advance(time.Minute)
		st, _ = know(s, j, "paused")
		s.Always("a negative wait means at once", st.Meta.RunCount == 1, st.Meta)
	})
}

// Proves J14, R4: snoozes survive a crash at each point. The run has one number and one
// key, and is committed once. Crashes before a snooze are forgotten with it.
func TestSnoozeSurvivesCrashes(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		keys := map[string]bool{}
		snoozes := 0
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(1000 * time.Hour),
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				keys[run.Key] = true
				if snoozes++; snoozes <= 2 {
					return jobs.Snooze(time.Minute)
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Finally("committed once", func() error {
			st, state := know(s, j, "a")
			if st.Meta.RunCount != 1 || state.Runs != 1 || len(keys) != 1 || st.Meta.RecoveryAttempts != 0 {
				return fmt.Errorf("%+v, state %+v, keys %v", st.Meta, state, keys)
			}
			return nil
		})
		s.Advance(10 * time.Minute)
	}, harness.NoTornBatch, harness.OneAlarm, harness.NeverOrphaned, crashes.Budget(300))
}

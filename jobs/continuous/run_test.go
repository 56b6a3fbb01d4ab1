package continuous_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// history returns the events of a job in order, as "kind run/attempt".
func history(s *harness.Sim, j *continuous.Job[tally], id string) []string {
	var kinds []string
	s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
		kinds = nil
		events, err := h.Events(ctx, j.ID(id), 0, 1000)
		for _, e := range events {
			var ev jobs.Event
			if err := json.Unmarshal(e.Data, &ev); err != nil {
				return err
			}
			line := fmt.Sprintf("%s %d/%d", e.Kind, ev.Run, ev.Attempt)
			if ev.Reason != "" {
				line += " " + ev.Reason
			}
			kinds = append(kinds, line)
		}
		return err
	}))
	return kinds
}

func sameLines(s *harness.Sim, name string, got []string, want ...string) {
	s.Always(name, strings.Join(got, "\n") == strings.Join(want, "\n"), "\n"+strings.Join(got, "\n"))
}

// Proves J11, J9, C4, Case 2, Case 4, Case 13: exactly one event for each start, success, failure, retry
// and exhaustion, in order, with the attempt that it is about; a run that was
// given up keeps the schedule.
func TestEventsOfRetries(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		fail := true
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour), Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Second)},
			Run: func(context.Context, *continuous.Run[tally]) error {
				if fail {
					return errors.New("boom")
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Minute)
		st, state := know(s, j, "a")
		s.Always("one failure counted, no state change", st.Meta.Failures == 1 && state.Runs == 0 && st.Meta.LastError == "boom", st.Meta)
		fail = false
		s.Advance(time.Hour)
		st, _ = know(s, j, "a")
		s.Always("a success ends the count", st.Meta.Failures == 0 && st.Meta.RunCount == 1 && st.Meta.LastError == "", st.Meta)
		sameLines(s, "events", history(s, j, "a"), "created 0/0",
			"start 1/1", "failure 1/1", "retry 1/1", "start 1/2", "failure 1/2", "exhausted 1/2 attempts", "start 1/1", "success 1/1")
	})
}

// Proves J11, J10: the moves of a job have one event each; a terminal one stays
// after the job has gone.
func TestEventsOfMoves(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{Schedule: jobs.Every(time.Hour), StartLater: true})
		s.Host(j)
		start(s, j, "a")
		s.OK(j.Pause(s.Context(), s, "a"))
		s.OK(j.Resume(s.Context(), s, "a"))
		s.OK(j.Stop(s.Context(), s, "a", "tired"))
		s.OK(j.Resume(s.Context(), s, "a"))
		s.OK(j.Terminate(s.Context(), s, "a", "enough"))
		sameLines(s, "events", history(s, j, "a"),
			"created 0/0", "paused 0/0", "resumed 0/0", "stopped 0/0 tired", "resumed 0/0", "terminated 0/0 enough")
	})
}

// Proves J9, Case 8, Case 9: the wait counts from the failure and not from the start of a slow
// attempt, and exhaustion by duration is told as such.
func TestSlowAttemptsAndDuration(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		var began []time.Time
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(24 * time.Hour), Exhausted: jobs.Fail,
			Retry: jobs.Retry{MaxAttempts: 9, Backoff: jobs.Constant(time.Minute), MaxElapsed: 25 * time.Minute},
			Run: func(context.Context, *continuous.Run[tally]) error {
				began = append(began, s.Now())
				s.Sleep(10 * time.Minute)
				return errors.New("boom")
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(2 * time.Hour)
		s.Always("eleven minutes from start to start", len(began) == 3 && began[1].Sub(began[0]) == 11*time.Minute, began)
		st, _ := know(s, j, "a")
		s.Always("failed for the duration", st.Meta.Status == jobs.Failed && st.Meta.StopReason == "given up: duration", st.Meta)
	})
}

// Proves J6, J7, Case 30: status and pause are served while a run executes; a healthy run
// of any length is never stolen, and its lease is extended.
func TestLongRun(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		runs := 0
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour),
			Run: func(context.Context, *continuous.Run[tally]) error {
				runs++
				s.Sleep(3 * time.Hour)
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		for range 10 {
			s.Advance(17 * time.Minute)
			st, state := know(s, j, "a")
			s.Always("executing since the start, state untouched", st.Meta.Status == jobs.Executing && state.Runs == 0 && !st.Meta.ExecutingAt.IsZero(), st.Meta)
			s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
				in, err := h.Inspect(ctx, j.ID("a"))
				s.Always("a lease check is armed", err != nil || in.Alarm != nil && in.Execution && in.Alarm.Due.Sub(s.Now()) <= 10*time.Second, in.Alarm)
				return err
			}))
		}
		s.OK(j.Resume(s.Context(), s, "a")) // nothing to resume
		s.OK(j.Pause(s.Context(), s, "a"))
		st, _ := know(s, j, "a")
		s.Always("pausing while the run goes on", st.Meta.Status == jobs.Executing && st.Meta.Pausing, st.Meta)
		s.Advance(time.Hour)
		st, _ = know(s, j, "a")
		s.Always("committed once, and paused", runs == 1 && st.Meta.RunCount == 1 && st.Meta.Status == jobs.Paused && st.Due.IsZero(), st.Meta)
	})
}

// Proves J7: an execution that exceeds its timeout fails with ErrTimeout, and one
// that ignores its context is fenced off.
func TestTimeout(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		deaf := false
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(24 * time.Hour), Timeout: time.Minute,
			Run: func(ctx context.Context, _ *continuous.Run[tally]) error {
				for deaf || ctx.Err() == nil {
					s.Sleep(time.Second)
				}
				return ctx.Err()
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(62 * time.Second)
		st, _ := know(s, j, "a")
		s.Always("timed out", st.Meta.Status == jobs.Running && st.Meta.Failures == 1 && strings.Contains(st.Meta.LastError, jobs.ErrTimeout.Error()), st.Meta)

		deaf = true
		s.OK(j.Trigger(s.Context(), s, "a"))
		s.Advance(2 * time.Minute)
		st, _ = know(s, j, "a")
		s.Always("fenced off", st.Meta.Status == jobs.Running && st.Meta.Failures == 2 && strings.Contains(st.Meta.LastError, "did not return"), st.Meta)
		deaf = false
		s.Advance(time.Minute)
		st, state := know(s, j, "a")
		s.Always("its late end changes nothing", st.Meta.Failures == 2 && st.Meta.RunCount == 0 && state.Runs == 0, st.Meta)
	})
}

// Proves J6: a state that cannot be encoded, one that is too large, and a panic
// fail the run and not the job.
func TestRunsThatCannotBeStored(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		var next func() any
		j := continuous.New(continuous.Config[any]{
			Name: "any", Schedule: jobs.Every(time.Hour),
			Run: func(_ context.Context, run *continuous.Run[any]) error {
				run.State = next()
				return nil
			},
		})
		s.Host(j)
		next = func() any { return "first" }
		_, err := j.Start(s.Context(), s, "a", nil)
		s.OK(err)
		s.RunUntilIdle()
		for n, bad := range []func() any{
			func() any { return func() {} },
			func() any { return strings.Repeat("x", 3<<20) },
			func() any { panic("oh no") },
		} {
			next = bad
			s.OK(j.Trigger(s.Context(), s, "a"))
			s.RunUntilIdle()
			st, err := j.Status(s.Context(), s, "a")
			s.OK(err)
			s.Always("the run failed, the job goes on", st.Meta.Status == jobs.Running && st.Meta.Failures == n+1 && st.Meta.RunCount == 1, st.Meta)
			state, err := j.State(s.Context(), s, "a")
			s.Always("the state is as it was", err == nil && state == "first", state, err)
		}
	})
}

// Proves J8, J10: a job ends during a run, and the context of the run with it. The end of
// the run then changes nothing.
func TestEndAfterTheEnd(t *testing.T) {
	for name, end := range map[string]func(s *harness.Sim, j *continuous.Job[tally]) error{
		"stop":      func(s *harness.Sim, j *continuous.Job[tally]) error { return j.Stop(s.Context(), s, "a", "") },
		"terminate": func(s *harness.Sim, j *continuous.Job[tally]) error { return j.Terminate(s.Context(), s, "a", "") },
	} {
		t.Run(name, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				cancelled := 0
				j := ticking(s, continuous.Config[tally]{
					Schedule: jobs.Every(time.Hour),
					Run: func(ctx context.Context, _ *continuous.Run[tally]) error {
						s.Sleep(time.Minute)
						if ctx.Err() != nil {
							cancelled++
						}
						return nil
					},
				})
				s.Host(j)
				start(s, j, "a")
				s.Advance(time.Second)
				s.OK(end(s, j))
				s.Advance(3 * time.Hour)
				s.Always("the work was cancelled", cancelled == 1)
				st, err := j.Status(s.Context(), s, "a")
				s.Always("no run was committed", errors.Is(err, jobs.ErrNotFound) || st.Meta.Status == jobs.Stopped && st.Meta.RunCount == 0, st, err)
			})
		})
	}
}

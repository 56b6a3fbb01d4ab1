package continuous_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves J6, Case JB7: work that waits with Run.Sleep waits virtual time, to the
// nanosecond, and a cancel ends the wait.
func TestRunSleeps(t *testing.T) {
	for name, wait := range map[string]func(s *harness.Sim, run *continuous.Run[tally], ctx context.Context) error{
		"Run": func(_ *harness.Sim, run *continuous.Run[tally], ctx context.Context) error {
			return run.Sleep(ctx, 10*time.Minute)
		},
		"Sim": func(s *harness.Sim, _ *continuous.Run[tally], ctx context.Context) error {
			return s.SleepContext(ctx, 10*time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				var began, ended time.Time
				var err error
				j := ticking(s, continuous.Config[tally]{
					Run: func(ctx context.Context, run *continuous.Run[tally]) error {
						began = s.Now()
						err = wait(s, run, ctx)
						ended = s.Now()
						return err
					},
				})
				s.Host(j)
				start(s, j, "a")
				s.Advance(10*time.Minute - 1)
				s.Always("it waits", ended.IsZero())
				s.Advance(1)
				s.Always("ten minutes", err == nil && ended.Sub(began) == 10*time.Minute, err, ended)

				s.OK(j.Trigger(s.Context(), s, "a"))
				s.Advance(time.Minute)
				s.OK(j.Terminate(s.Context(), s, "a", "enough"))
				s.RunUntilIdle()
				s.Always("cancelled", errors.Is(err, object.ErrReset) && ended.Sub(began) == time.Minute, err, ended.Sub(began))
			})
		})
	}
}

// Proves J3: Pause of a paused job and Resume of one that goes on change nothing and
// are no errors, also while a run executes; a MoveError names the job.
func TestPauseTwice(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour),
			Run:      func(ctx context.Context, run *continuous.Run[tally]) error { return run.Sleep(ctx, time.Minute) },
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Second)
		for _, verb := range []func(context.Context, string) error{
			func(ctx context.Context, id string) error { return j.Resume(ctx, s, id) },
			func(ctx context.Context, id string) error { return j.Pause(ctx, s, id) },
			func(ctx context.Context, id string) error { return j.Pause(ctx, s, id) },
		} {
			s.OK(verb(s.Context(), "a"))
		}
		s.Advance(time.Minute)
		s.OK(j.Pause(s.Context(), s, "a"))
		st, _ := know(s, j, "a")
		s.Always("paused", st.Meta.Status == jobs.Paused && st.Meta.RunCount == 1, st.Meta)
		s.OK(j.Resume(s.Context(), s, "a"))
		s.OK(j.Resume(s.Context(), s, "a"))
		sameLines(s, "one event for each change", history(s, j, "a"), "created 0/0", "start 1/1", "success 1/1", "paused 1/0", "resumed 1/0")

		s.OK(j.Stop(s.Context(), s, "a", "enough"))
		err := j.Pause(s.Context(), s, "a")
		var move *jobs.MoveError
		s.Always("the job is named", errors.As(err, &move) && move.ID == j.ID("a") &&
			err.Error() == "jobs: illegal move of counter/a from stopped to paused: Resume it first", err)
	})
}

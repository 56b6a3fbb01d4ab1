package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// restart calls Restart until it is known to have happened.
func restart[In, Out any](s *harness.Sim, w *workflow.Workflow[In, Out], id string, in In) {
	before := status(s, w, id).Generation
	s.OK(s.Retry(func() error {
		err := w.Restart(s.Context(), s, id, in)
		if errors.Is(err, jobs.ErrIllegalMove) && status(s, w, id).Generation > before { // the answer was lost
			return nil
		}
		return err
	}))
}

// Proves F12, F19. Runs that have completed, failed and were cancelled begin anew: with the new input,
// under new keys, with no dead letter and no Cancel, and with the signal that was not taken.
// Case WF22.
func TestCrashRestart(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[string, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, in string) (string, error) {
			v, err := do(s, c, "a")
			if err != nil {
				return "", err
			}
			switch in {
			case "fails":
				return "", errNo
			case "sleeps":
				return "", workflow.Sleep(c, time.Hour)
			case "anew":
				v, err = approved.Wait(c, 0)
			}
			return v + in, err
		})
		s.Host(w)
		ids := []string{"completes", "fails", "sleeps"}
		for _, id := range ids {
			start(s, w, id, id)
		}
		// After crashes in a row the runs are held back for a while (A8).
		s.Eventually(3*time.Hour, "the step is done", func() bool { return len(timesOf(s, "order/sleeps", "a", time.Time{})) > 0 })
		s.Advance(time.Second)
		sends(s, w, "sleeps", "yes")
		s.OK(s.Retry(func() error { return w.Cancel(s.Context(), s, "sleeps", "no more") }))
		out, err := ends(s, w, "completes")
		s.Always("completed", err == nil && out == "acompletes", out, err)
		_, err = ends(s, w, "fails")
		s.Always("failed", errors.Is(err, workflow.ErrFailed), err)
		_, err = ends(s, w, "sleeps")
		s.Always("cancelled", errors.Is(err, workflow.ErrCancelled), err)
		s.Always("a dead letter", len(letters(s)) == 1, letters(s))
		for _, id := range ids {
			restart(s, w, id, "anew")
			if id != "sleeps" {
				sends(s, w, id, "yes")
			}
			out, err := ends(s, w, id)
			s.Always("completed anew", err == nil && out == "yesanew", id, out, err)
			st := status(s, w, id)
			s.Always("another generation", st.Generation == 1 && st.Meta.Status == jobs.Completed && st.CancelReason == "", st)
		}
		s.Always("no dead letter", len(letters(s)) == 0, letters(s))
		s.Finally("new keys", func() error {
			keys := map[string]bool{}
			for _, e := range s.World().Log() {
				keys[e.Key] = true
			}
			if len(keys) != 6 {
				return fmt.Errorf("%v", keys)
			}
			return nil
		})
	}, promises...)
}

// Proves F19. A run that has not ended is not begun anew, and a missing one is not found.
func TestRestartRefused(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, int]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, _ int) (int, error) { return 0, workflow.Sleep(c, time.Hour) })
		s.Host(w)
		err := w.Restart(s.Context(), s, "1", 1)
		s.Always("not found", errors.Is(err, jobs.ErrNotFound), err)
		start(s, w, "1", 7)
		s.Advance(time.Minute)
		err = w.Restart(s.Context(), s, "1", 1)
		s.Always("running", errors.Is(err, jobs.ErrIllegalMove), err)
		st := status(s, w, "1")
		s.Always("nothing has changed", st.Generation == 0 && st.Entries == 1, st)
	})
}

// Proves F19 and F1: a Restart that is refused leaves the step under way alone.
func TestRestartDuringAStep(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			_, err := slow(s, c, "a", time.Hour)
			return "a", err
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(time.Minute)
		err := w.Restart(s.Context(), s, "1", 1)
		s.Always("executing", errors.Is(err, jobs.ErrIllegalMove), err)
		s.Advance(59 * time.Minute)
		out, err := ends(s, w, "1")
		s.Always("the end", err == nil && out == "a", out, err)
		s.Always("begun once", len(timesOf(s, "order/1", "a", time.Time{})) == 1, s.World().Log())
	})
}

// retryAll calls RetryAll on the host of the simulation.
func retryAll[In, Out any](s *harness.Sim, w *workflow.Workflow[In, Out], match func(st workflow.Status) bool) (retried int, took time.Duration) {
	began := s.Now()
	s.OK(s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
		retried, err = w.RetryAll(ctx, h, match)
		return err
	}))
	return retried, s.Now().Sub(began)
}

// Proves F19. RetryAll retries the failed runs that match, a hundred in a second, and tells their number;
// one that has begun its undos stays failed, and those of other statuses stay.
func TestRetryAll(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		heals := false
		w := workflow.New[string, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 1}})
		w.Func(func(c *workflow.Context, in string) (string, error) {
			if in == "undone" {
				undoesNamed(s, c, "u")
			}
			return workflow.Step(c, "b", func(context.Context) (string, error) {
				if in != "good" && !heals {
					return "", errNo
				}
				return in, nil
			})
		})
		s.Host(w)
		start(s, w, "good", "good")
		start(s, w, "undone", "undone")
		for i := range 12 {
			start(s, w, fmt.Sprint("bad", i), "bad")
		}
		s.Advance(time.Minute)
		n, _ := retryAll(s, w, func(workflow.Status) bool { return false })
		s.Always("none", n == 0, n)
		n, took := retryAll(s, w, func(st workflow.Status) bool { return strings.HasPrefix(st.Meta.ID, "bad") })
		s.Always("in vain", n == 12, n)
		s.Always("a hundred in a second", took >= 110*time.Millisecond && took < 120*time.Millisecond, took)
		s.Advance(time.Minute)
		heals = true
		n, took = retryAll(s, w, nil)
		s.Always("all but that with undos", n == 12, n)
		s.Always("a hundred in a second", took >= 120*time.Millisecond && took < 130*time.Millisecond, took)
		for i := range 12 {
			out, err := ends(s, w, fmt.Sprint("bad", i))
			s.Always("completed", err == nil && out == "bad", out, err)
		}
		st := status(s, w, "undone")
		s.Always("failed still", st.Meta.Status == jobs.Failed, st)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.OK(s.WithHost(func(_ context.Context, h *object.Host) error {
			if _, err := w.RetryAll(ctx, h, nil); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("a context that has ended: %w", err)
			}
			return nil
		}))
	})
}

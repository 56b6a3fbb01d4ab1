package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// promises are the checks of every story. The Budget is of an ordinary run of the tests; the
// reliability suite has its own.
var promises = []harness.Option{crashes.Budget(80), harness.NoLostAck, harness.NoTornBatch, harness.OneAlarm, harness.NeverOrphaned, harness.OneEnd, harness.AtMostOncePerCrash("order/")}

// start starts a run until the answer is known.
func start[In, Out any](s *harness.Sim, w *workflow.Workflow[In, Out], id string, in In) {
	s.OK(s.Retry(func() error {
		_, err := w.Start(s.Context(), s, id, in)
		return err
	}))
}

// status reads the status of a run.
func status[In, Out any](s *harness.Sim, w *workflow.Workflow[In, Out], id string) (st workflow.Status) {
	s.OK(s.Retry(func() (err error) {
		st, err = w.Status(s.Context(), s, id)
		return err
	}))
	return st
}

// do is a step with one outside effect.
func do(s *harness.Sim, c *workflow.Context, name string) (string, error) {
	return workflow.Step(c, name, func(ctx context.Context) (string, error) {
		s.World().Do(workflow.Key(ctx), nil)
		return name, nil
	})
}

// ends waits for the output of a run.
func ends[In, Out any](s *harness.Sim, w *workflow.Workflow[In, Out], id string) (out Out, err error) {
	s.OK(s.Retry(func() error {
		out, err = w.Wait(s.Context(), s, id)
		if errors.Is(err, workflow.ErrFailed) || errors.Is(err, workflow.ErrCancelled) {
			return nil
		}
		return err
	}))
	return out, err
}

// Proves F1, F2. Three steps run in order, each once and once more at most for each crash.
func TestCrashThreeSteps(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			trace := ""
			for _, name := range []string{"a", "b", "c"} {
				v, err := do(s, c, name)
				if err != nil {
					return "", err
				}
				trace += v
			}
			return fmt.Sprintf("%s%d", trace, n), nil
		})
		s.Host(w)
		start(s, w, "1", 7)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == "abc7", out, err)
		st := status(s, w, "1")
		s.Always("completed", st.Meta.Status == jobs.Completed && st.Entries == 3, st)
		s.Finally("each step had its effect", func() error {
			keys := map[string]bool{}
			for _, e := range s.World().Log() {
				keys[e.Key] = true
			}
			if len(keys) != 3 {
				return fmt.Errorf("F1: effects %v", s.World().Log())
			}
			return nil
		})
	}, promises...)
}

// Proves F4. A run sleeps for ten days, without its process.
func TestCrashSleep(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, time.Time]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (time.Time, error) {
			if _, err := do(s, c, "a"); err != nil {
				return time.Time{}, err
			}
			if err := workflow.Sleep(c, 240*time.Hour); err != nil {
				return time.Time{}, err
			}
			_, err := do(s, c, "b")
			return c.Now(), err
		})
		s.Host(w)
		began := s.Now()
		start(s, w, "1", 7)
		s.Advance(239 * time.Hour)
		st := status(s, w, "1")
		s.Always("asleep", st.Meta.Status == jobs.Running && len(st.Waits) == 1 && st.Waits[0].Kind == "sleep", st)
		s.Advance(2 * time.Hour)
		out, err := ends(s, w, "1")
		s.Always("not early", err == nil && out.Sub(began) >= 240*time.Hour, out, err)
	}, promises...)
}

var approved = workflow.NewSignal[string]("approved")

// Proves F5. A run takes the signals in their order, each once.
func TestCrashSignals(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			trace := ""
			for range n {
				v, err := approved.Wait(c, 0)
				if err != nil {
					return "", err
				}
				trace += v
				if _, err := do(s, c, "s"+v); err != nil {
					return "", err
				}
			}
			if _, err := approved.Wait(c, time.Hour); !errors.Is(err, workflow.ErrTimeout) {
				return "", fmt.Errorf("no timeout: %w", err)
			}
			return trace, nil
		})
		s.Host(w)
		start(s, w, "1", 3)
		for i := range 3 {
			s.OK(s.Retry(func() error {
				return approved.Send(s.Context(), s, w, "1", fmt.Sprint(i), object.Idempotent(fmt.Sprint(i), 0))
			}))
			s.Advance(time.Duration(i) * time.Second)
		}
		s.Advance(2 * time.Hour)
		out, err := ends(s, w, "1")
		s.Always("order", err == nil && out == "012", out, err)
	}, promises...)
}

package workflow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// ofSteps is a workflow of n steps that take a second each.
func ofSteps(s *harness.Sim, n int, c workflow.Config) *workflow.Workflow[int, int] {
	w := workflow.New[int, int]("order", c)
	w.Func(func(c *workflow.Context, _ int) (int, error) {
		for i := range n {
			if _, err := slow(s, c, fmt.Sprint(i), time.Second); err != nil {
				return i, err
			}
		}
		return n, nil
	})
	return w
}

// numbers are the names of n steps.
func numbers(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(i))
	}
	return names
}

// Shutdown in the middle of a run is free of charge: even a run that no crash may cut off goes
// on in the next process (O14).
func TestShutdownAmongSteps(t *testing.T) {
	const steps = 1000
	for _, at := range []time.Duration{500 * time.Second, 500*time.Second + time.Second/2} { // between two steps, and in one
		t.Run(at.String(), func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				w := ofSteps(s, steps, workflow.Config{MaxRecoveries: -1})
				s.Host(w)
				start(s, w, "1", 7)
				s.Advance(at)
				s.Shutdown()
				s.Always("no step begins in a Shutdown", len(effects(s, "order/1")) <= 501, effects(s, "order/1"))
				s.Restart()
				out, err := ends(s, w, "1")
				s.Always("the end", err == nil && out == steps, out, err)
				st := status(s, w, "1")
				s.Always("free of charge", st.Meta.Status == jobs.Completed && st.Meta.RecoveryAttempts == 0, st)
				for _, e := range s.World().Log() {
					n := s.World().Count(e.Key)
					s.Always("once each", n == 1 || n == 2 && effectName(e.Key) == "500", e.Key, n)
				}
				happenedInOrder(s, "order/1", numbers(steps))
			})
		})
	}
}

// happenedInOrder checks the order of the effects of a run. Repeats in a row count as one.
func happenedInOrder(s *harness.Sim, run string, want []string) {
	s.Finally("the order", func() error {
		if got := effects(s, run); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("effects %q, want %q", got, want)
		}
		return nil
	})
}

// A Shutdown and a crash in any order leave a run that goes on.
func TestCrashShutdown(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := ofSteps(s, 6, workflow.Config{})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(2 * time.Second)
		s.Restart()
		s.Advance(2500 * time.Millisecond)
		s.Restart()
		out, err := ends(s, w, "1")
		s.Always("the end", err == nil && out == 6, out, err)
		happenedInOrder(s, "order/1", numbers(6))
	}, promises[:len(promises)-1]...) // a step in flight is repeated because of the Shutdown
}

// A Shutdown with runs that sleep, wait for a moment, wait for an attempt or undo lets each go on.
func TestCrashShutdownWaiting(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(900 * time.Millisecond)}})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			if _, err := do(s, c, "a"); err != nil {
				return "", err
			}
			switch n {
			case 0:
				return "slept", workflow.Sleep(c, time.Second)
			case 1:
				return outcomeOf(failing(s, c, "b", errNo)), nil
			}
			undoes(s, c, "a")
			return "", errNo
		})
		s.Host(w)
		for i := range 3 {
			start(s, w, fmt.Sprint(i), i)
		}
		s.Advance(500 * time.Millisecond)
		s.Restart()
		out, err := ends(s, w, "0")
		s.Always("slept", err == nil && out == "slept", out, err)
		out, err = ends(s, w, "1")
		s.Always("two attempts", err == nil && out == "b: no after 2, panicked false, timed out false", out, err)
		_, err = ends(s, w, "2")
		s.Always("undone", err != nil, err)
		happened(s, "order/0", "a")
		happened(s, "order/2", "a", "undo/undo a")
	}, promises...)
}

package workflow_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

func small(o *object.Options) { o.MaxValueBytes = 4096 }

// Proves F1: an input that is too large for ContinueAs fails the run, and its steps do not
// begin anew.
func TestContinueAsTooLarge(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[string, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, _ string) (string, error) {
			if _, err := do(s, c, "a"); err != nil {
				return "", err
			}
			return w.ContinueAs(c, strings.Repeat("x", 5000))
		})
		s.Host(w)
		start(s, w, "1", "")
		_, err := ends(s, w, "1")
		s.Always("failed", errors.Is(err, workflow.ErrFailed) && strings.Contains(err.Error(), "ContinueAs: the input: the value has"), err)
		s.Always("once", len(s.World().Log()) == 1, s.World().Log())
	}, harness.HostOptions(small))
}

// Proves F8: a Cancel ends a run that begins anew again and again, and waits for nothing.
func TestCancelOfGenerations(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, int]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, n int) (int, error) {
			_, _ = approved.Wait(c, 0)
			return w.ContinueAs(c, n+1)
		})
		s.Host(w)
		start(s, w, "1", 0)
		s.RunUntilIdle()
		s.OK(w.Cancel(s.Context(), s, "1", "enough"))
		_, err := ends(s, w, "1")
		st := status(s, w, "1")
		s.Always("cancelled", errors.Is(err, workflow.ErrCancelled) && st.Generation == 0, err, st)
	})
}

// Proves F3: a branch that has ended in a Sleep, before the function went on, sees no later
// Cancel in its repeat.
func TestCancelBehindABranch(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		undone := 0
		w := workflow.New[int, int]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, n int) (int, error) {
			_, err := workflow.Each(c, "part", []int{0, 1}, 0, func(c *workflow.Context, i int) (int, error) {
				if _, err := do(s, c, "a"); err != nil {
					return 0, err
				}
				return i, workflow.Sleep(c, time.Duration(i+1)*time.Hour)
			})
			if err != nil {
				return 0, err
			}
			workflow.Undo(c, "all", func(context.Context) error { undone++; return nil })
			if _, err := do(s, c, "b"); err != nil {
				return 0, err
			}
			_, err = approved.Wait(c, 0)
			return n, err
		})
		s.Host(w)
		start(s, w, "1", 0)
		s.Advance(3 * time.Hour)
		s.OK(w.Cancel(s.Context(), s, "1", "enough"))
		_, err := ends(s, w, "1")
		s.Always("cancelled and undone", errors.Is(err, workflow.ErrCancelled) && undone == 1, err, undone)
	})
}

// Proves F3: code that goes on in a branch which had ended, or lets it fail, is stuck and adds
// nothing to the history, so that the code before heals the run. With Patched the branch stays
// as it was.
func TestBranchesThatHadEnded(t *testing.T) {
	type variant func(c *workflow.Context) error
	more := func(c *workflow.Context) error {
		_, err := workflow.Step(c, "new", func(context.Context) (int, error) { return 0, nil })
		return err
	}
	for name, changed := range map[string]variant{
		"goes on": more,
		"fails":   func(*workflow.Context) error { return errors.New("no") },
		"patched": func(c *workflow.Context) error {
			if workflow.Patched(c, "new") {
				return more(c)
			}
			return nil
		},
	} {
		harness.Run(t, func(s *harness.Sim) {
			var tail variant
			w := workflow.New[int, int]("order", workflow.Config{Signals: workflow.Signals{approved}})
			w.Func(func(c *workflow.Context, n int) (int, error) {
				_, err := workflow.Each(c, "part", []int{0, 1}, 0, func(c *workflow.Context, i int) (int, error) {
					if _, err := do(s, c, "a"); err != nil || tail == nil {
						return 0, err
					}
					return 0, tail(c)
				})
				if err != nil {
					return 0, err
				}
				if _, err := do(s, c, "b"); err != nil {
					return 0, err
				}
				_, err = approved.Wait(c, 0)
				return n, err
			})
			s.Host(w)
			start(s, w, "1", 7)
			s.RunUntilIdle()
			before := status(s, w, "1").Entries
			tail = changed
			if name != "patched" {
				s.OK(approved.Send(s.Context(), s, w, "1", "yes"))
				s.Advance(10 * time.Minute)
				st := status(s, w, "1")
				s.Always("stuck", st.Meta.Status == jobs.Stuck && st.Entries == before && strings.Contains(st.Meta.LastError, "diverged"), name, st)
				tail = nil
				s.OK(w.Resume(s.Context(), s, "1"))
			} else {
				s.OK(approved.Send(s.Context(), s, w, "1", "yes"))
			}
			out, err := ends(s, w, "1")
			s.Always("ends as before", err == nil && out == 7 && len(s.World().Log()) == 3, name, out, err)
		})
	}
}

// A variable that is too large makes the run stuck with the reason, and the step before it is
// not repeated.
func TestVarTooLarge(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		shown := workflow.NewVar[string]("shown")
		w := workflow.New[int, int]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (int, error) {
			if _, err := do(s, c, "a"); err != nil {
				return 0, err
			}
			shown.Set(c, strings.Repeat("x", 5000))
			return n, workflow.Sleep(c, time.Hour)
		})
		s.Host(w)
		start(s, w, "1", 0)
		s.Advance(5 * time.Minute)
		st := status(s, w, "1")
		s.Always("stuck", st.Meta.Status == jobs.Stuck && strings.Contains(st.Meta.LastError, `variable "shown"`) && len(s.World().Log()) == 1, st, s.World().Log())
	}, harness.HostOptions(small))
}

// Proves F7: an output that the message to the parent cannot hold fails its child, and the
// parent hears of it. One byte less arrives.
func TestOutputOfAChildLimit(t *testing.T) {
	const limit = entryLimit/4*3 - 1024
	for size, ok := range map[int]bool{limit: true, limit + 1: false} {
		harness.Run(t, func(s *harness.Sim) {
			leaf := workflow.New[int, string]("leaf", workflow.Config{})
			leaf.Func(func(*workflow.Context, int) (string, error) { return strings.Repeat("x", size-2), nil })
			w := workflow.New[int, int]("order", workflow.Config{})
			w.Func(func(c *workflow.Context, n int) (int, error) {
				out, err := workflow.Child(c, leaf, "c", n)
				return len(out), err
			})
			s.Host(w, leaf)
			start(s, w, "1", 0)
			out, err := ends(s, w, "1")
			s.Always("the answer", ok && err == nil && out == size-2 || !ok && errors.Is(err, workflow.ErrFailed) && strings.Contains(err.Error(), "the value of a child has"), size, out, err)
		}, harness.HostOptions(small))
	}
}

// Proves F3: an Each that begins where the history ends with a patch whose line is gone is a new
// one, and its branches run.
func TestEachBehindADroppedPatch(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		dropped := false
		w := workflow.New[int, int]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, n int) (int, error) {
			if !dropped {
				workflow.Patched(c, "x")
				_, err := approved.Wait(c, 0)
				return n, err
			}
			_, err := workflow.Each(c, "part", []int{0, 1}, 0, func(c *workflow.Context, i int) (string, error) { return do(s, c, "a") })
			return n, err
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.RunUntilIdle()
		s.Always("the history is the patch", status(s, w, "1").Entries == 1)
		dropped = true
		s.OK(approved.Send(s.Context(), s, w, "1", "yes"))
		s.Advance(30 * time.Second) // a run that is stuck is tried again after a minute
		st := status(s, w, "1")
		s.Always("the branches have run", st.Meta.Status == jobs.Completed && len(s.World().Log()) == 2, st)
	})
}

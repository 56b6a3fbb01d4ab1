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
)

// Proves F5. A run begins anew three times with signals waiting. None is lost, the order stays,
// keys are new in each generation, and the data of Atomic and the variable are kept.
// Cases 35 and WF14.
func TestCrashContinueAs(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[string, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, trace string) (string, error) {
			v, err := approved.Wait(c, 0)
			if err != nil {
				return "", err
			}
			if _, err := do(s, c, "s"); err != nil {
				return "", err
			}
			n, err := workflow.Atomic(c, "count", func(ctx context.Context, tx *workflow.Tx) (int, error) {
				old, _, err := tx.Get(ctx, "n")
				if err != nil {
					return 0, err
				}
				return len(old) + 1, tx.Put(ctx, "n", append(old, 'x'))
			})
			if err != nil {
				return "", err
			}
			trace += v
			if c.Generation() == 0 {
				shown.Set(c, "first")
			}
			if n < 4 {
				return w.ContinueAs(c, trace)
			}
			return fmt.Sprintf("%s in generation %d", trace, c.Generation()), nil
		})
		s.Host(w)
		start(s, w, "1", "")
		send(s, w, "1", "1", "1")
		send(s, w, "1", "2", "2")
		s.Advance(time.Minute)
		send(s, w, "1", "3", "3")
		send(s, w, "1", "4", "4")
		out, err := ends(s, w, "1")
		s.Always("each signal once, in order", err == nil && out == "1234 in generation 3", out, err)
		s.OK(s.Retry(func() error {
			v, ok, err := shown.Get(s.Context(), s, w, "1")
			s.Always("the variable is kept", err != nil || ok && v == "first", v, ok)
			return err
		}))
		st := status(s, w, "1")
		s.Always("the history is that of the last generation", st.Generation == 3 && st.Entries == 3 && entriesOf(s, w, "1")[0].Seq == 0, st)
		s.Finally("a key for each generation", func() error {
			keys := map[string]bool{}
			for _, e := range s.World().Log() {
				keys[e.Key] = true
			}
			for g := range 4 {
				found := false
				for k := range keys {
					found = found || strings.HasSuffix(k, fmt.Sprintf("/%d/s#1", g))
				}
				if !found {
					return fmt.Errorf("no key of generation %d: %v", g, keys)
				}
			}
			if len(keys) != 4 {
				return fmt.Errorf("keys %v", keys)
			}
			return onceEach(s, "order/")
		})
	}, promises...)
}

// A Cancel that comes while a run begins anew is seen by the next generation.
func TestCrashContinueCancelled(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			if _, err := do(s, c, "s"); err != nil {
				return "", err
			}
			if err := workflow.Sleep(c, time.Minute); err != nil && n > 0 {
				return "", err
			}
			return w.ContinueAs(workflow.WithoutCancel(c), n+1) // the first generation looks at no Cancel
		})
		s.Host(w)
		start(s, w, "1", 0)
		s.Advance(30 * time.Second)
		cancelRun(s, w, "1", "")
		out, err := ends(s, w, "1")
		s.Always("cancelled", err != nil && strings.Contains(err.Error(), "cancelled"), out, err)
		st := status(s, w, "1")
		s.Always("in the next generation, before a step", st.Generation == 1 && len(effects(s, "order/1")) == 1, st)
	}, promises...)
}

// wanted is an input that refuses itself.
type wanted int

func (w wanted) Validate() error {
	if w < 0 {
		return errNo
	}
	return nil
}

// Proves F10, F17. ContinueAs where no run can begin anew makes the run stuck and changes nothing, so that a deploy heals it.
func TestContinueAsMisuse(t *testing.T) {
	type flow = workflow.Workflow[wanted, int]
	other := workflow.New[wanted, int]("other", workflow.Config{})
	other.Func(func(*workflow.Context, wanted) (int, error) { return 0, nil })
	for text, code := range map[string]func(s *harness.Sim, c *workflow.Context, w *flow) (int, error){
		"ContinueAs with 1 undos registered": func(s *harness.Sim, c *workflow.Context, w *flow) (int, error) {
			workflow.Undo(c, "u", func(context.Context) error { s.World().Do("undone", nil); return nil })
			return w.ContinueAs(c, 1)
		},
		"ContinueAs in branch part[0]: return its result from the function": func(_ *harness.Sim, c *workflow.Context, w *flow) (int, error) {
			_, err := workflow.Each(c, "part", []int{0}, 0, func(c *workflow.Context, _ int) (int, error) { return w.ContinueAs(c, 1) })
			return 0, err
		},
		"ContinueAs in branch lone[0]: return its result from the function": func(_ *harness.Sim, c *workflow.Context, w *flow) (int, error) {
			return workflow.Go(c, "lone", func(c *workflow.Context) (int, error) { return w.ContinueAs(c, 1) }).Wait(c)
		},
		"ContinueAs with 1 branches that were not waited for: call Wait or First before it": func(s *harness.Sim, c *workflow.Context, w *flow) (int, error) {
			if _, err := nothing(c, "joined").Wait(c); err != nil {
				return 0, err
			}
			workflow.Go(c, "alive", func(c *workflow.Context) (int, error) {
				return workflow.Child(c, newChildren(s), "c", task{Sleeps: time.Hour})
			})
			return w.ContinueAs(c, 1)
		},
		"ContinueAs of workflow other in a run of order: a run keeps its workflow; start another with Child": func(_ *harness.Sim, c *workflow.Context, _ *flow) (int, error) {
			return other.ContinueAs(c, 1)
		},
	} {
		harness.Run(t, func(s *harness.Sim) {
			deploy := func(heals bool) *flow {
				w := workflow.New[wanted, int]("order", workflow.Config{})
				w.Func(func(c *workflow.Context, n wanted) (int, error) {
					if _, err := do(s, c, "a"); err != nil {
						return 0, err
					}
					if n > 0 || heals {
						return int(n), nil
					}
					return code(s, c, w)
				})
				return w
			}
			w := deploy(false)
			s.Host(w, other, newChildren(s))
			start(s, w, "1", 0)
			s.Advance(10 * time.Second)
			st := status(s, w, "1")
			s.Always("stuck", st.Meta.Status == jobs.Stuck && st.Generation == 0 && strings.Contains(st.Meta.LastError, "misuse: "+text), st.Meta.LastError)
			if st.Entries > 1 { // it has branches, which the code below has not
				return
			}
			w = deploy(true)
			s.Restart(harness.WithCode(w, other, newChildren(s)))
			out, err := ends(s, w, "1")
			s.Always("healed", err == nil && out == 0, out, err)
		})
	}
}

// Proves F17. A branch that has won a First was waited for, so the run begins anew without a Wait.
func TestContinueAsAfterFirst(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, int]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (int, error) {
			if n == 3 {
				return n, nil
			}
			slow := workflow.Go(c, "slow", func(c *workflow.Context) (int, error) { return 0, workflow.Sleep(c, time.Hour) })
			if _, err := workflow.First(c, nothing(c, "fast"), slow); err != nil {
				return 0, err
			}
			return w.ContinueAs(c, n+1)
		})
		s.Host(w)
		start(s, w, "1", 0)
		s.Advance(time.Minute)
		out, err := ends(s, w, "1")
		s.Always("three times anew", err == nil && out == 3, out, err)
	})
}

// Proves J4. ContinueAs refuses an input that refuses itself, before anything is changed.
func TestContinueAsInvalid(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[wanted, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n wanted) (string, error) {
			if n > 0 {
				return fmt.Sprint("generation ", c.Generation()), nil
			}
			_, err := w.ContinueAs(c, -1)
			if !errors.Is(err, jobs.ErrInvalid) || err.Error() != "workflow: ContinueAs: the input: jobs: invalid: order/1: input: no" {
				return "", fmt.Errorf("not refused: %w", err)
			}
			return w.ContinueAs(c, 1)
		})
		s.Host(w)
		start(s, w, "1", 0)
		out, err := ends(s, w, "1")
		s.Always("the next generation", err == nil && out == "generation 1", out, err)
	})
}

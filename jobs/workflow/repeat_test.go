package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// scopeCode is the code of a scope.
type scopeCode func(c *workflow.Context) error

// shapes are the ways in which two scopes run at the same time.
var shapes = map[string]func(c *workflow.Context, a, b scopeCode) error{
	"each": func(c *workflow.Context, a, b scopeCode) error {
		_, err := workflow.Each(c, "both", []scopeCode{a, b}, 0, runCode)
		return err
	},
	"each turned round": func(c *workflow.Context, a, b scopeCode) error {
		_, err := workflow.Each(c, "both", []scopeCode{b, a}, 0, runCode)
		return err
	},
	"each within each": func(c *workflow.Context, a, b scopeCode) error {
		_, err := workflow.Each(c, "outer", []scopeCode{b, func(c *workflow.Context) error {
			_, err := workflow.Each(c, "inner", []scopeCode{a}, 0, runCode)
			return err
		}}, 0, runCode)
		return err
	},
	"two branches": func(c *workflow.Context, a, b scopeCode) error {
		two := []*workflow.Branch[int]{
			workflow.Go(c, "b", func(c *workflow.Context) (int, error) { return runCode(c, b) }),
			workflow.Go(c, "a", func(c *workflow.Context) (int, error) { return runCode(c, a) }),
		}
		for _, branch := range two {
			if _, err := branch.Wait(c); err != nil {
				return err
			}
		}
		return nil
	},
	"branch beside the function": func(c *workflow.Context, a, b scopeCode) error {
		branch := workflow.Go(c, "b", func(c *workflow.Context) (int, error) { return runCode(c, b) })
		if err := a(c); err != nil {
			return err
		}
		_, err := branch.Wait(c)
		return err
	},
}

func runCode(c *workflow.Context, code scopeCode) (int, error) { return 0, code(c) }

// newOperations are operations that the changed code of a scope begins with.
func newOperations(s *harness.Sim, children *workflow.Workflow[task, int]) map[string]scopeCode {
	return map[string]scopeCode{
		"step": func(c *workflow.Context) error { _, err := do(s, c, "x"); return err },
		"atomic": func(c *workflow.Context) error {
			_, err := workflow.Atomic(c, "x", func(context.Context, *workflow.Tx) (int, error) {
				s.World().Do("atomic x", nil)
				return 0, nil
			})
			return err
		},
		"sleep":  func(c *workflow.Context) error { return workflow.Sleep(c, time.Millisecond) },
		"signal": func(c *workflow.Context) error { _, err := approved.Wait(c, 0); return err },
		"wait":   func(c *workflow.Context) error { _, err := approved.Wait(c, time.Hour); return err },
		"child": func(c *workflow.Context) error {
			_, err := workflow.Child(c, children, "x", task{N: 1})
			return err
		},
		"each": func(c *workflow.Context) error {
			_, err := workflow.Each(c, "x", []int{1}, 0, func(*workflow.Context, int) (int, error) { return 0, nil })
			return err
		},
		"go":      func(c *workflow.Context) error { _, err := nothing(c, "x").Wait(c); return err },
		"patched": func(c *workflow.Context) error { workflow.Patched(c, "x"); return nil },
		"undo": func(c *workflow.Context) error {
			workflow.Undo(c, "x", func(context.Context) error { s.World().Do("undone x", nil); return nil })
			return nil
		},
		"set":     func(c *workflow.Context) error { shown.Set(c, "x"); return nil },
		"failure": func(*workflow.Context) error { return errNo },
	}
}

// Proves F3, F10, F14. Two scopes run at the same time, and only one of them has recorded something that the
// changed code does not follow. Whichever goes first in the repeat, the other stores nothing of
// the changed code, so the code of before heals the run.
func TestChangedCodeBesideARepeat(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, rt *rapid.T) {
		shape := shapes[rapid.SampledFrom(slices.Sorted(maps.Keys(shapes))).Draw(rt, "shape")]
		children := newChildren(s)
		operations := newOperations(s, children)
		begin := operations[rapid.SampledFrom(slices.Sorted(maps.Keys(operations))).Draw(rt, "operation")]
		code := func(a, b scopeCode) *workflow.Workflow[int, string] {
			w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
			w.Func(func(c *workflow.Context, _ int) (string, error) { return "done", shape(c, a, b) })
			return w
		}
		old := code(func(c *workflow.Context) error {
			_, err := do(s, c, "a")
			return errors.Join(err, workflow.Sleep(c, 5*time.Minute))
		}, func(c *workflow.Context) error {
			_, err := slow(s, c, "b", 5*time.Minute)
			return err
		})
		changed := code(func(c *workflow.Context) error {
			_, err := do(s, c, "x")
			return err
		}, begin)
		s.Host(old, children)
		start(s, old, "1", 7)
		send(s, old, "1", "yes", "1")
		recorded := func() (n int) {
			s.Eventually(time.Hour, "the sleep is recorded", func() bool {
				all := entriesOf(s, old, "1")
				n = len(all)
				return n > 0 && all[n-1].Kind == "sleep"
			})
			return n
		}()
		s.Crash(harness.PowerLoss) // the slow step goes on through an orderly end
		s.Restart(harness.WithCode(changed, children))
		s.Eventually(time.Hour, "the run is stuck", func() bool { return status(s, changed, "1").Meta.Status == jobs.Stuck })
		st := status(s, changed, "1")
		s.Always("it says why", strings.Contains(st.Meta.LastError, "the code does not follow the history"), st.Meta.LastError)
		v, ok, err := shown.Get(s.Context(), s, changed, "1")
		s.Always("nothing is shown", !ok && (err == nil || harness.Unknown(err)), v, err)
		s.Always("nothing is recorded", len(entriesOf(s, changed, "1")) == recorded, entriesOf(s, changed, "1"))
		s.Restart(harness.WithCode(old, children))
		s.Advance(20 * time.Minute)
		out, err := ends(s, old, "1")
		s.Always("healed", err == nil && out == "done", out, err)
		v, ok, err = shown.Get(s.Context(), s, old, "1")
		s.Always("nothing of the changed code is shown", !ok && (err == nil || harness.Unknown(err)), v, err)
		s.Finally("no effect of the changed code", func() error {
			for _, e := range s.World().Log() {
				if strings.HasSuffix(e.Key, " x") || strings.HasSuffix(e.Key, "/x#1") {
					return fmt.Errorf("effect %q", e.Key)
				}
			}
			return nil
		})
	})
}

// Proves F3. The changed code of a branch goes on with a new step, and holds the only lane of its Each, so
// that a later branch with entries cannot begin its repeat: the step begins all the same.
func TestNewStepBeforeALaterBranch(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		code := func(more bool) *workflow.Workflow[int, string] {
			w := workflow.New[int, string]("order", workflow.Config{})
			w.Func(func(c *workflow.Context, _ int) (string, error) {
				_, err := workflow.Each(c, "part", []string{"a", "b"}, 1, func(c *workflow.Context, name string) (int, error) {
					if _, err := do(s, c, name); err != nil {
						return 0, err
					}
					if name == "b" {
						return 0, workflow.Sleep(c, time.Hour)
					}
					if more {
						_, err := do(s, c, "more")
						return 0, err
					}
					return 0, nil
				})
				return "done", err
			})
			return w
		}
		w := code(false)
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(time.Minute)
		w = code(true)
		s.Restart(harness.WithCode(w))
		s.Advance(time.Hour)
		out, err := ends(s, w, "1")
		s.Always("the end", err == nil && out == "done", out, err)
		happened(s, "order/1", "part[0]/a", "part[1]/b", "part[0]/more")
	})
}

// Proves F3. After a crash the branches of an Each go on in the order of their items, whichever of them have
// entries, as they begin without a crash: so the same one fails first. The tasks of this test run first
// come, first served.
func TestOrderOfARepeat(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		begun := make(map[int][]int) // by start: the items in the order of their first steps in it
		w := workflow.New[int, int]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, _ int) (int, error) {
			_, err := workflow.Each(c, "item", []int{0, 1, 2, 3}, 0, func(c *workflow.Context, i int) (int, error) {
				for _, name := range []string{"a", "b"} {
					if _, err := workflow.Step(c, name, func(ctx context.Context) (int, error) {
						if n := s.Crashes(); !slices.Contains(begun[n], i) {
							begun[n] = append(begun[n], i)
						}
						return i, s.World().Do(workflow.Key(ctx), nil)
					}); err != nil {
						return 0, err
					}
				}
				_, err := workflow.Step(c, "fail", func(context.Context) (int, error) { return 0, errNo }, workflow.Retry(jobs.Retry{MaxAttempts: 1}))
				return 0, err
			})
			return 0, err
		})
		s.Host(w)
		start(s, w, "1", 7)
		_, err := ends(s, w, "1")
		for _, items := range begun {
			s.Always("in the order of the items", slices.IsSorted(items), items)
		}
		s.Always("the first item has failed first", strings.Contains(fmt.Sprint(err), "item 0: "), err)
	}, harness.Depth(2), crashes.Budget(200))
}

// Proves F10. A branch panics while another waits for the turn of an Atomic. Nothing new is stored after
// the end of the stretch.
func TestNothingNewBehindAPanic(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, _ *rapid.T) {
		w := workflow.New[int, int]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, _ int) (int, error) {
			broke := false
			_, err := workflow.Each(c, "both", []int{0, 1}, 0, func(c *workflow.Context, i int) (int, error) {
				if i == 1 {
					if _, err := do(s, c, "a"); err != nil {
						return 0, err
					}
					broke = true
					panic("no")
				}
				for range 20 {
					if _, err := workflow.Atomic(c, "b", func(context.Context, *workflow.Tx) (int, error) {
						s.Always("nothing new behind the panic", !broke)
						return 0, nil
					}); err != nil {
						return 0, err
					}
				}
				return 0, workflow.Sleep(c, time.Hour)
			})
			return 0, err
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Eventually(time.Hour, "the run is stuck", func() bool { return status(s, w, "1").Meta.Status == jobs.Stuck })
	})
}

package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// undoesNamed registers an undo with an effect.
func undoesNamed(s *harness.Sim, c *workflow.Context, name string) {
	workflow.Undo(c, name, func(context.Context) error {
		s.World().Do("undone "+name, nil)
		return nil
	})
}

// Proves F17. Branches run beside the function, which waits for them in another order than it has
// begun them; one sleeps for a day meanwhile, and two have one name.
// Case WF20.
func TestCrashBranches(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			long := workflow.Go(c, "part", func(c *workflow.Context) (string, error) {
				if err := workflow.Sleep(c, 24*time.Hour); err != nil {
					return "", err
				}
				return do(s, c, "long")
			})
			short := workflow.Go(c, "part", func(c *workflow.Context) (int, error) {
				v, err := do(s, c, "short")
				return n + len(v), err
			})
			own, err := do(s, c, "own")
			if err != nil {
				return "", err
			}
			b, err := short.Wait(c)
			if err != nil {
				return "", err
			}
			if _, err := do(s, c, "between"); err != nil {
				return "", err
			}
			a, err := long.Wait(c)
			again, _ := long.Wait(c)
			return fmt.Sprint(own, b, a, again), err
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(12 * time.Hour)
		st := status(s, w, "1")
		s.Always("suspended", st.Meta.Status == jobs.Running && len(st.Steps) == 0, st)
		s.Advance(13 * time.Hour)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == "own12longlong", out, err)
		s.Finally("each step", func() error {
			got := steps(s)
			slices.Sort(got)
			if fmt.Sprint(got) != "[between#1 long#1 own#1 short#1]" {
				return fmt.Errorf("%v", got)
			}
			return nil
		})
	}, promises...)
}

// Proves F9, F17. The error of a branch is that of its Wait, in each repeat, and the undos of a
// branch run with those of the function if that fails.
func TestCrashBranchFails(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 1}})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			good := workflow.Go(c, "good", func(c *workflow.Context) (string, error) {
				v, err := do(s, c, "a")
				undoesNamed(s, c, "a")
				return v, err
			})
			bad := workflow.Go(c, "bad", func(c *workflow.Context) (string, error) {
				undoesNamed(s, c, "b")
				return "", failing(s, c, "breaks", errNo)
			})
			_, err := bad.Wait(c)
			if err == nil || err.Error() != `branch "bad": step "breaks": no` {
				return "", fmt.Errorf("another error: %w", err)
			}
			if err := workflow.Sleep(c, time.Hour); err != nil {
				return "", err
			}
			if v, err := good.Wait(c); err != nil || v != "a" {
				return "", fmt.Errorf("another end: %q, %w", v, err)
			}
			return "", err
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(2 * time.Hour)
		_, err := ends(s, w, "1")
		s.Always("failed", errors.Is(err, workflow.ErrFailed) && strings.HasSuffix(err.Error(), `: branch "bad": step "breaks": no`), err)
		s.Finally("undone", func() error {
			if s.World().Count("undone a") == 0 || s.World().Count("undone b") == 0 {
				return fmt.Errorf("%v", s.World().Log())
			}
			return nil
		})
	}, promises...)
}

// Proves F17. A function that returns with branches under way cancels them and waits for them, with or
// without an error: a step in a branch is cut off, none begins after the end, those of
// WithoutCancel go on, and the undos of a branch run.
func TestCrashBranchesAlive(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[bool, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, fails bool) (string, error) {
			workflow.Go(c, "steps", func(c *workflow.Context) (string, error) {
				undoesNamed(s, c, fmt.Sprint(fails))
				if _, err := slow(s, c, "cut", time.Hour); err != nil {
					return "", err
				}
				return do(s, c, "late")
			})
			workflow.Go(c, "sleeps", func(c *workflow.Context) (string, error) {
				workflow.Go(c, "inner", func(c *workflow.Context) (string, error) {
					if err := workflow.Sleep(c, 2*time.Hour); err != nil {
						return "", err
					}
					return do(s, c, "late")
				})
				err := workflow.Sleep(c, time.Hour)
				return "", err
			})
			workflow.Go(workflow.WithoutCancel(c), "shielded", func(c *workflow.Context) (string, error) {
				if err := workflow.Sleep(c, 3*time.Minute); err != nil {
					return "", err
				}
				s.World().Do("shielded "+c.ID(), nil)
				return "", nil
			})
			if err := workflow.Sleep(c, time.Minute); err != nil {
				return "", err
			}
			if fails {
				return "", errNo
			}
			return "done", nil
		})
		s.Host(w)
		start(s, w, "good", false)
		start(s, w, "bad", true)
		s.Advance(2 * time.Minute)
		for _, id := range []string{"good", "bad"} {
			st := status(s, w, id)
			s.Always("waits for the shielded", s.Crashes() > 0 || !st.Meta.Status.Ended(), st)
		}
		s.Advance(4 * time.Hour)
		out, err := ends(s, w, "good")
		s.Always("completed", err == nil && out == "done", out, err)
		_, err = ends(s, w, "bad")
		s.Always("failed", errors.Is(err, workflow.ErrFailed) && strings.HasSuffix(err.Error(), ": no"), err)
		s.Finally("nothing after the end", func() error {
			names := strings.Join(steps(s), " ")
			switch {
			case strings.Contains(names, "late"):
				return fmt.Errorf("a step began late: %s", names)
			case s.World().Count("shielded good") == 0 || s.World().Count("shielded bad") == 0:
				return fmt.Errorf("a shielded branch was cut off: %v", s.World().Log())
			case s.World().Count("undone true") == 0 || s.World().Count("undone false") > 0:
				return fmt.Errorf("undone: %v", s.World().Log())
			}
			return nil
		})
	}, promises...)
}

// Proves F8, F17. A Cancel reaches branches, and the Wait for them.
func TestCrashBranchesCancelled(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			b := workflow.Go(c, "b", func(c *workflow.Context) (string, error) {
				if err := workflow.Sleep(c, 2*time.Hour); err != nil {
					return "", err
				}
				return do(s, c, "late")
			})
			undoesNamed(s, c, "all")
			return b.Wait(c)
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(time.Hour)
		s.OK(s.Retry(func() error { return w.Cancel(s.Context(), s, "1", "no more") }))
		s.Advance(2 * time.Hour)
		_, err := ends(s, w, "1")
		s.Always("cancelled", errors.Is(err, workflow.ErrCancelled), err)
		s.Finally("undone", func() error {
			if len(steps(s)) != 1 || s.World().Count("undone all") == 0 {
				return fmt.Errorf("%v", s.World().Log())
			}
			return nil
		})
	}, promises...)
}

// Proves F17. Retry of a run that had cancelled branches at its end is refused, because they cannot
// go on; one with branches that had ended is tried again.
func TestCrashRetryBesideBranches(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		heals := false
		w := workflow.New[bool, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 1}})
		w.Func(func(c *workflow.Context, alive bool) (string, error) {
			b := workflow.Go(c, "b", func(c *workflow.Context) (string, error) {
				if alive {
					return "", workflow.Sleep(c, time.Hour)
				}
				return do(s, c, "a")
			})
			if !alive {
				if _, err := b.Wait(c); err != nil {
					return "", err
				}
			}
			return workflow.Step(c, "c", func(context.Context) (string, error) {
				if !heals {
					return "", errNo
				}
				return "c", nil
			})
		})
		s.Host(w)
		start(s, w, "ended", false)
		start(s, w, "alive", true)
		for _, id := range []string{"ended", "alive"} {
			_, err := ends(s, w, id)
			s.Always("failed", errors.Is(err, workflow.ErrFailed), err)
		}
		heals = true
		retry(s, w, "ended")
		out, err := ends(s, w, "ended")
		s.Always("completed", err == nil && out == "c", out, err)
		s.OK(s.Retry(func() error {
			if err := w.Retry(s.Context(), s, "alive"); !errors.Is(err, workflow.ErrUndone) {
				return fmt.Errorf("retried: %w", err)
			}
			return nil
		}))
	}, promises...)
}

// Proves F9, F17. The undos of branches that were under way at the end run in the order of the
// history with those of the function, also in a repeat that finds the function failed, under code
// that does not fail any more.
func TestCrashUndosOfBranches(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		mended, changed := false, false
		w := workflow.New[int, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 100, Backoff: jobs.Constant(time.Minute)}})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			undoes(s, c, "root")
			workflow.Go(c, "part", func(c *workflow.Context) (string, error) {
				_, err := workflow.Each(c, "in", []string{"b", "c"}, 1, func(c *workflow.Context, name string) (string, error) {
					return do(s, c, name)
				})
				if err != nil {
					return "", err
				}
				undoes(s, c, "branch")
				workflow.Undo(c, "slow", func(ctx context.Context) error {
					if !mended {
						return errNo
					}
					s.World().Do(workflow.Key(ctx), nil)
					return nil
				})
				return "", workflow.Sleep(c, time.Hour)
			})
			if err := workflow.Sleep(c, time.Minute); err != nil {
				return "", err
			}
			if changed {
				return do(s, c, "more")
			}
			return "", errNo
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Eventually(time.Hour, "the function has failed", func() bool {
			return slices.ContainsFunc(entriesOf(s, w, "1"), func(e workflow.Entry) bool { return e.Kind == "fail" })
		})
		changed = true
		s.Advance(5 * time.Minute)
		mended = true
		s.Advance(2 * time.Hour)
		_, err := ends(s, w, "1")
		s.Always("failed", errors.Is(err, workflow.ErrFailed), err)
		happened(s, "order/1", "part[0]/in[0]/b", "part[0]/in[1]/c", "undo/undo slow", "undo/undo branch", "undo/undo root")
	}, append(promises, crashes.Budget(60))...)
}

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

// crowd counts how many steps run at a time in the present process.
type crowd struct {
	s       *harness.Sim
	process int
	now     int
	most    int
}

// enter counts a step in until the returned function is called.
func (c *crowd) enter() (leave func()) {
	if c.process != c.s.Crashes() { // nothing of the process before runs any more
		c.process, c.now = c.s.Crashes(), 0
	}
	c.now++
	c.most = max(c.most, c.now)
	process := c.process
	return func() {
		if process == c.process {
			c.now--
		}
	}
}

// slow is a step with an effect that takes a while.
func (c *crowd) slow(ctx *workflow.Context, name string, takes time.Duration) error {
	_, err := workflow.Step(ctx, name, func(ctx context.Context) (int, error) {
		defer c.enter()()
		c.s.World().Do(workflow.Key(ctx), nil)
		return 0, c.s.SleepContext(ctx, takes)
	})
	return err
}

// steps returns the names of the steps whose keys are in the log, each once, in the order of
// their first effect.
func steps(s *harness.Sim) (names []string) {
	seen := map[string]bool{}
	for _, e := range s.World().Log() {
		if !seen[e.Key] {
			seen[e.Key] = true
			names = append(names, e.Key[strings.LastIndex(e.Key, "/")+1:])
		}
	}
	return names
}

var eight = []int{0, 1, 2, 3, 4, 5, 6, 7}

// Proves F1, F3. Two of eight branches run at a time, and the results stand in the order of the
// items.
// Case WF13.
func TestCrashEach(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		c := &crowd{s: s}
		w := workflow.New[int, []int]("order", workflow.Config{})
		w.Func(func(ctx *workflow.Context, n int) ([]int, error) {
			return workflow.Each(ctx, "items", eight, 2, func(ctx *workflow.Context, i int) (int, error) {
				return i * n, c.slow(ctx, fmt.Sprint("s", i), time.Duration(1+i%3)*100*time.Millisecond)
			})
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(time.Minute)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && fmt.Sprint(out) == "[0 7 14 21 28 35 42 49]", out, err)
		s.Finally("two at a time, each step", func() error {
			if c.most != 2 || len(steps(s)) != 8 {
				return fmt.Errorf("%d at a time, steps %v", c.most, steps(s))
			}
			return nil
		})
	}, promises...)
}

// Proves F9. One of eight branches fails: the one beside it is cancelled, no further begins,
// Each tells the error of the lowest index, and the undos of the branches run, the last one
// first.
func TestCrashEachFails(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		c := &crowd{s: s}
		w := workflow.New[int, int]("order", workflow.Config{})
		w.Func(func(ctx *workflow.Context, n int) (int, error) {
			_, err := workflow.Each(ctx, "items", eight, 2, func(ctx *workflow.Context, i int) (int, error) {
				if i == 3 {
					_, err := workflow.Step(ctx, "breaks", func(context.Context) (int, error) {
						return 0, errors.New("no")
					}, workflow.Retry(jobs.Retry{MaxAttempts: 1}))
					return 0, err
				}
				if err := c.slow(ctx, fmt.Sprint("s", i), time.Duration(1+i)*100*time.Millisecond); err != nil {
					return 0, err
				}
				workflow.Undo(ctx, fmt.Sprint("u", i), func(ctx context.Context) error {
					s.World().Do(workflow.Key(ctx), nil)
					return nil
				})
				return i, nil
			})
			if errors.Is(err, workflow.ErrCancelled) {
				return 0, fmt.Errorf("cancelled: %w", err)
			}
			return 0, err
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(time.Minute)
		_, err := ends(s, w, "1")
		s.Always("the error", errors.Is(err, workflow.ErrFailed) && strings.HasSuffix(err.Error(), `: item 3: step "breaks": no`), err)
		s.Finally("the order", func() error {
			// s0 ends at 0.1 s and s1 at 0.2 s; s2 would end at 0.4 s, and 3 fails at 0.2 s.
			got := strings.Join(steps(s), " ")
			undone := got[strings.Index(got, "undo"):]
			if s.Crashes() == 0 && undone != "undo u1#1 undo u0#1" {
				return fmt.Errorf("%s", got)
			}
			for _, i := range []string{"3", "4", "5", "6", "7"} {
				if strings.Contains(got, "s"+i) {
					return fmt.Errorf("branch %s began: %s", i, got)
				}
			}
			if strings.Contains(undone, "s") || !strings.Contains(undone, "undo u1#1") || !strings.Contains(undone, "undo u0#1") {
				return fmt.Errorf("%s", got)
			}
			return nil
		})
	}, promises...)
}

// Proves F3, F4. A run whose branches all sleep is suspended until the first is to go on.
func TestCrashEachSleeps(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(ctx *workflow.Context, n int) (string, error) {
			out, err := workflow.Each(ctx, "items", []int{1, 2, 3}, 0, func(ctx *workflow.Context, i int) (string, error) {
				if _, err := do(s, ctx, "before"); err != nil {
					return "", err
				}
				if err := workflow.Sleep(ctx, time.Duration(i)*24*time.Hour); err != nil {
					return "", err
				}
				return do(s, ctx, fmt.Sprint("after", i))
			})
			return strings.Join(out, " "), err
		})
		s.Host(w)
		began := s.Now()
		start(s, w, "1", 7)
		for day := range 3 {
			s.Advance(12 * time.Hour)
			st := status(s, w, "1")
			s.Always("suspended", st.Meta.Status == jobs.Running && len(st.Waits) == 4-day && len(st.Steps) == 0, st)
			s.Always("how far the Each is", countOf(st.Waits, workflow.Wait{Kind: "each", Name: "items", Done: day, Total: 3}) == 1, st)
			wake := st.Due.Sub(began)
			s.Always("until the first is to go on", wake >= time.Duration(day+1)*24*time.Hour && wake < time.Duration(day+1)*24*time.Hour+2*time.Minute, st.Due)
			s.Advance(12*time.Hour + 2*time.Minute)
		}
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == "after1 after2 after3", out, err)
	}, promises...)
}

// Proves F9. An Each in an Each: a failure cancels the branches of the inner one and those of
// the outer one, and Undo in the innermost branches is registered.
func TestCrashEachNested(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[bool, string]("order", workflow.Config{})
		w.Func(func(ctx *workflow.Context, fails bool) (string, error) {
			out, err := workflow.Each(ctx, "rows", []int{0, 1, 2}, 2, func(ctx *workflow.Context, row int) (string, error) {
				cells, err := workflow.Each(ctx, "cells", []int{0, 1}, 2, func(ctx *workflow.Context, cell int) (string, error) {
					name := fmt.Sprintf("%d%d", row, cell)
					workflow.Undo(ctx, name, func(ctx context.Context) error {
						s.World().Do("undone "+name, nil)
						return nil
					})
					v, err := do(s, ctx, name)
					if err == nil && fails && name == "11" {
						err = errors.New("eleven")
					}
					if err == nil && row == 0 {
						err = workflow.Sleep(ctx, time.Hour)
					}
					return v, err
				})
				return strings.Join(cells, ","), err
			})
			return strings.Join(out, ";"), err
		})
		s.Host(w)
		start(s, w, "good", false)
		start(s, w, "bad", true)
		s.Advance(2 * time.Hour)
		out, err := ends(s, w, "good")
		s.Always("the output", err == nil && out == "00,01;10,11;20,21", out, err)
		_, err = ends(s, w, "bad")
		s.Always("the error", errors.Is(err, workflow.ErrFailed) && strings.HasSuffix(err.Error(), ": item 1: item 1: eleven"), err)
		s.Finally("undone once each", func() error {
			for _, name := range []string{"00", "01", "10", "11", "20", "21"} {
				n := s.World().Count("undone " + name)
				if bound := 1 + s.Crashes(); n > bound || n == 0 && name == "11" {
					return fmt.Errorf("%s undone %d times in %d crashes", name, n, s.Crashes())
				}
			}
			return nil
		})
	}, promises...)
}

// Proves F8, F9. A run that is cancelled in an Each is cancelled, and not failed, whichever
// branch sees the cancel first, and the undos of all branches run.
func TestCrashEachCancelled(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, int]("order", workflow.Config{})
		w.Func(func(ctx *workflow.Context, n int) (int, error) {
			_, err := workflow.Each(ctx, "items", eight, 2, func(ctx *workflow.Context, i int) (int, error) {
				if _, err := do(s, ctx, fmt.Sprint("s", i)); err != nil {
					return 0, err
				}
				workflow.Undo(ctx, "u", func(ctx context.Context) error {
					s.World().Do(workflow.Key(ctx), nil)
					return nil
				})
				return 0, workflow.Sleep(ctx, time.Hour)
			})
			return 0, err
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(90 * time.Minute)
		s.OK(s.Retry(func() error { return w.Cancel(s.Context(), s, "1", "no more") }))
		s.Advance(time.Minute)
		_, err := ends(s, w, "1")
		s.Always("cancelled", errors.Is(err, workflow.ErrCancelled), err)
		s.Finally("the order", func() error {
			got := strings.Join(steps(s), " ")
			if i := strings.Index(got, "undo"); i < 0 || strings.Contains(got[i:], "s") || strings.Count(got, "undo u#") != 4 || strings.Count(got, "s") != 4 {
				return fmt.Errorf("%s", got)
			}
			return nil
		})
	}, promises...)
}

package workflow_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// countOf counts the elements that are equal to v.
func countOf[T comparable](all []T, v T) (n int) {
	for _, x := range all {
		if x == v {
			n++
		}
	}
	return n
}

// Proves F15. The status tells why a run is where it is, and the next process tells the same of a
// run that nothing has touched, from its rows.
func TestWhyOfARun(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		child := workflow.New[int, int]("child", workflow.Config{})
		child.Func(func(c *workflow.Context, n int) (int, error) { return n, workflow.Sleep(c, 1000*time.Hour) })
		w := workflow.New[string, string]("order", workflow.Config{Concurrency: 1, Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, what string) (string, error) {
			switch what {
			case "wf-signal":
				return approved.Wait(c, 0)
			case "wf-timer":
				return "", workflow.Sleep(c, 1000*time.Hour)
			case "wf-child":
				_, err := workflow.Child(c, child, "c", 1)
				return "", err
			case "wf-stuck":
				panic("at a loss")
			case "wf-step": // the wait for another attempt
				return workflow.Step(c, "s", func(context.Context) (string, error) { return "", errNo },
					workflow.Retry(jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(1000 * time.Hour)}))
			case "paused":
				if _, err := slow(s, c, "s", time.Second); err != nil {
					return "", err
				}
				return do(s, c, "never")
			case "ended":
				return do(s, c, "s")
			}
			return slow(s, c, what, 1000*time.Hour)
		})
		s.Host(w, child)
		codes := []string{"wf-signal", "wf-timer", "wf-child", "wf-stuck", "wf-step", "paused", "ended", "live", "wf-queued"}
		for _, code := range codes {
			start(s, w, code, code)
			if code == "paused" {
				pause(s, w, code, time.Time{})
			}
			s.Advance(2 * time.Second)
		}
		look := func(codes []string) {
			for _, code := range codes {
				st := status(s, w, code)
				s.Always("why", st.Why == code, code, " ", st.Why, st)
			}
		}
		look(codes[:len(codes)-2])
		look([]string{"wf-queued"})
		st := status(s, w, "live")
		s.Always("the step under way", st.Why == "wf-step" && len(st.Steps) == 1 && st.Steps[0].Step == "live" && st.Steps[0].Attempt == 1 && !st.Steps[0].Since.IsZero(), st)
		s.Crash(harness.Kill)
		s.Restart()
		s.Advance(2 * time.Second)
		look(codes[:len(codes)-2])
		a, b := status(s, w, "live").Why, status(s, w, "wf-queued").Why
		s.Always("one has the place", a == "wf-step" && b == "wf-queued" || a == "wf-queued" && b == "wf-step", a, b)
	}, promises...)
}

// Proves F15. The status shows how many branches of an Each have ended, also of one in a branch.
func TestHowFarAnEachIs(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			_, err := workflow.Each(c, "items", []int{0, 1, 2, 3, 4}, 2, func(c *workflow.Context, i int) (string, error) {
				if i != 4 {
					return slow(s, c, "s", time.Minute)
				}
				_, err := workflow.Each(c, "parts", []int{0, 1, 2}, 1, func(c *workflow.Context, _ int) (string, error) {
					return slow(s, c, "p", time.Minute)
				})
				return "", err
			})
			return "", err
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(30 * time.Second)
		for _, want := range []int{0, 2, 4, 4, 4} {
			st := status(s, w, "1")
			s.Always("how far", countOf(st.Waits, workflow.Wait{Kind: "each", Name: "items", Done: want, Total: 5}) == 1, want, st)
			s.Advance(time.Minute)
			if want == 4 {
				parts := slices.IndexFunc(st.Waits, func(w workflow.Wait) bool { return w.Name == "items[4]/parts" && w.Total == 3 })
				s.Always("the inner one", parts >= 0, st)
			}
		}
		s.Always("completed", status(s, w, "1").Meta.Status == jobs.Completed)
	}, promises...)
}

// Proves F15. A run that finds no place tells so once for each wait, also if turns look again
// meanwhile, and its status says so. It has no label, so a list finds it among the running.
func TestCrashQueuedIsTold(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Concurrency: 1, Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			if _, err := slow(s, c, "a", time.Minute); err != nil || n == 1 {
				return "", err
			}
			return approved.Wait(c, 0)
		})
		s.Host(w)
		start(s, w, "1", 1)
		start(s, w, "2", 2)
		send(s, w, "2", "x", "x")
		send(s, w, "2", "y", "y")
		st := status(s, w, "2")
		s.Always("queued", s.Crashes() > 0 || st.Queued && st.Why == "wf-queued", st)
		s.OK(s.Retry(func() error {
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				for run, err := range w.List(ctx, h, workflow.ListOptions{Label: jobs.Running}) {
					s.Always("listed", s.Crashes() > 0 || err == nil && run.Meta.ID == "2" && run.Queued, run, err)
				}
				return nil
			})
		}))
		_, err := ends(s, w, "1")
		s.Always("the first ends", err == nil, err)
		out, err := ends(s, w, "2")
		s.Always("the second too", err == nil && out == "x", out, err)
		n := told(s, w.ID("1"), workflow.EventQueued)
		s.Always("the first is not told of", s.Crashes() > 0 || n == 0, n)
		n = told(s, w.ID("2"), workflow.EventQueued)
		s.Always("the second is", s.Crashes() > 0 || n == 1, n)
		s.Always("once for each begin that a crash has cut off", n <= 1+s.Crashes(), n)
	}, promises...)
}

// Proves F15. The next wait for a place is told again: a run that was queued at its start, has
// waited for a signal, and finds no place when it comes.
func TestQueuedAgain(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Concurrency: 1, Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			if n == 1 {
				return slow(s, c, "a", time.Minute)
			}
			return approved.Wait(c, 0)
		})
		s.Host(w)
		for life := 1; life <= 2; life++ {
			start(s, w, []string{"", "1", "3"}[life], 1)
			if life == 1 {
				start(s, w, "2", 2)
			} else {
				send(s, w, "2", "x", "x")
			}
			s.Always("told again", told(s, w.ID("2"), workflow.EventQueued) == life && status(s, w, "2").Queued)
			s.Advance(2 * time.Minute)
		}
		out, err := ends(s, w, "2")
		s.Always("ended", err == nil && out == "x", out, err)
		s.Always("no more", told(s, w.ID("2"), workflow.EventQueued) == 2)
	}, promises...)
}

// Proves F15. A scope that waits for something that is no operation is told as blocked after a
// minute, once, and again if it goes on and blocks again. Nothing else is, however long it takes:
// a scope just below a minute, a step, a wait in memory, and the undos.
func TestBlocked(t *testing.T) {
	for _, c := range []struct {
		name string
		want int // blocks that are told
		code func(s *harness.Sim, c *workflow.Context) error
	}{
		{"the function", 1, func(s *harness.Sim, c *workflow.Context) error { s.Sleep(10 * time.Minute); return nil }},
		{"the function", 0, func(s *harness.Sim, c *workflow.Context) error { s.Sleep(59 * time.Second); return nil }},
		{"the function", 2, func(s *harness.Sim, c *workflow.Context) error {
			s.Sleep(5 * time.Minute)
			_, err := do(s, c, "between")
			s.Sleep(5 * time.Minute)
			return err
		}},
		{"the function", 0, func(s *harness.Sim, c *workflow.Context) error {
			for range 20 {
				s.Sleep(50 * time.Second)
				if _, err := do(s, c, "between"); err != nil {
					return err
				}
			}
			return nil
		}},
		{"", 0, func(s *harness.Sim, c *workflow.Context) error {
			_, err := slow(s, c, "long", 10*time.Minute)
			return err
		}},
		{"", 0, func(s *harness.Sim, c *workflow.Context) error {
			undoes(s, c, "long")
			workflow.Undo(c, "slow", func(ctx context.Context) error { return s.SleepContext(ctx, 10*time.Minute) })
			return errNo
		}},
		{"branch items[1]", 1, func(s *harness.Sim, c *workflow.Context) error {
			_, err := workflow.Each(c, "items", []int{0, 1, 2}, 0, func(c *workflow.Context, i int) (string, error) {
				switch i {
				case 0:
					return slow(s, c, "long", 10*time.Minute)
				case 1:
					s.Sleep(5 * time.Minute)
				case 2:
					return "", workflow.Sleep(c, 8*time.Minute)
				}
				return "", nil
			})
			return err
		}},
	} {
		harness.Run(t, func(s *harness.Sim) {
			w := workflow.New[int, string]("order", workflow.Config{})
			w.Func(func(ctx *workflow.Context, _ int) (string, error) {
				if _, err := do(s, ctx, "a"); err != nil {
					return "", err
				}
				return "", c.code(s, ctx)
			})
			s.Host(w)
			start(s, w, "1", 7)
			s.Advance(59 * time.Second)
			st := status(s, w, "1")
			s.Always("not before a minute", st.Why != "wf-blocked" && told(s, w.ID("1"), workflow.EventBlocked) == 0, st)
			s.Advance(31 * time.Second)
			if n := told(s, w.ID("1"), workflow.EventBlocked); c.want > 0 {
				st := status(s, w, "1")
				s.Always("after a minute and a half", n == 1 && st.Why == "wf-blocked" && reasonOf(s, w.ID("1"), workflow.EventBlocked) == c.name, n, st)
			}
			s.Advance(4 * time.Minute)
			if st := status(s, w, "1"); c.want > 0 && c.name != "the function" {
				s.Always("it goes on", st.Why == "wf-step", st)
			}
			s.Advance(time.Hour)
			n := told(s, w.ID("1"), workflow.EventBlocked)
			s.Always("told", n == c.want, n, " ", c.want)
			s.Always("ended", status(s, w, "1").Meta.Status.Ended(), status(s, w, "1"))
		})
	}
}

// A run that is to be paused is not blocked while one branch waits for the end of the step of another.
func TestPausingIsNotBlocked(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			_, err := workflow.Each(c, "items", []int{0, 1}, 0, func(c *workflow.Context, i int) (string, error) {
				if i == 0 {
					return slow(s, c, "long", 10*time.Minute)
				}
				s.Sleep(10 * time.Second)
				workflow.Patched(c, "change")
				return do(s, c, "b")
			})
			return "", err
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(time.Second)
		pause(s, w, "1", time.Time{})
		s.Advance(time.Hour)
		s.Always("paused", status(s, w, "1").Meta.Status == jobs.Paused, status(s, w, "1"))
		s.Always("not told", told(s, w.ID("1"), workflow.EventBlocked) == 0)
		resume(s, w, "1")
		_, err := ends(s, w, "1")
		s.Always("ended", err == nil || errors.Is(err, workflow.ErrFailed), err)
	})
}

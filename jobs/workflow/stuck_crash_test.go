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

// troubles are codes that a run cannot go on with, and a part of the error that each gives.
var troubles = []struct {
	name, text string
	code       func(s *harness.Sim, c *workflow.Context) (string, error)
}{
	{"renamed", `entry 1 of the function is step "a", the code asked for step "a2"`, func(s *harness.Sim, c *workflow.Context) (string, error) {
		return do(s, c, "a2")
	}},
	{"removed", `entry 1 of the function is step "a", the code asked for sleep`, func(s *harness.Sim, c *workflow.Context) (string, error) {
		err := workflow.Sleep(c, time.Hour)
		return "", err
	}},
	{"another kind", `entry 1 of the function is step "a", the code asked for atomic "a"`, func(s *harness.Sim, c *workflow.Context) (string, error) {
		return workflow.Atomic(c, "a", func(ctx context.Context, tx *workflow.Tx) (string, error) {
			return "", tx.Put(ctx, "k", []byte("v"))
		})
	}},
	{"ends early", `entry 2 of the function is sleep, the code ended before it`, func(s *harness.Sim, c *workflow.Context) (string, error) {
		return do(s, c, "a")
	}},
	{"fails early", `entry 2 of the function is sleep, the code ended before it`, func(s *harness.Sim, c *workflow.Context) (string, error) {
		workflow.Undo(c, "a", func(context.Context) error {
			s.World().Do("undone by wrong code", nil)
			return nil
		})
		_, err := do(s, c, "a")
		return "", errors.Join(err, errors.New("wrong"))
	}},
	{"panics", `the function has panicked: at a loss`, func(s *harness.Sim, c *workflow.Context) (string, error) {
		do(s, c, "a")
		panic("at a loss")
	}},
	{"cannot decode", `cannot decode the recorded value of step "a"`, func(s *harness.Sim, c *workflow.Context) (string, error) {
		n, err := workflow.Step(c, "a", func(context.Context) (int, error) { return 1, nil })
		return fmt.Sprint(n), err
	}},
}

// Proves F3, F10. A run whose code was changed under it is stuck: nothing runs and nothing is
// stored but its trouble, it is tried again after one minute, then two, and up to ten, and goes
// on with the right code, by itself or at once by Resume.
// Case 31.
func TestCrashStuck(t *testing.T) {
	for _, trouble := range troubles {
		t.Run(trouble.name, func(t *testing.T) {
			crashes.Try(t, func(s *harness.Sim) {
				right, wrong := workflow.New[int, string]("order", workflow.Config{}), workflow.New[int, string]("order", workflow.Config{})
				right.Func(func(c *workflow.Context, n int) (string, error) {
					a, err := do(s, c, "a")
					if err == nil {
						err = workflow.Sleep(c, time.Hour)
					}
					if err != nil {
						return "", err
					}
					b, err := do(s, c, "b")
					return a + b, err
				})
				wrong.Func(func(c *workflow.Context, n int) (string, error) { return trouble.code(s, c) })
				s.Host(right)
				began := s.Now()
				start(s, right, "1", 7)
				s.Advance(time.Minute)
				s.Restart(harness.WithCode(wrong))
				s.Advance(time.Hour + 10*time.Second)
				var st workflow.Status
				s.Eventually(4*time.Hour, "stuck or ended", func() bool { // at once, unless crashes in a row hold the run back (A8)
					st = status(s, wrong, "1")
					return st.Meta.Status == jobs.Stuck || st.Meta.Status.Ended()
				})
				s.Always("stuck", st.Meta.Status == jobs.Stuck && strings.Contains(st.Meta.LastError, trouble.text), st)
				s.Always("at once", s.Crashes() > 2 || s.Now().Sub(began) < 2*time.Hour, st)
				s.Always("nothing stored", st.Entries == 2, st)
				s.Always("tried after minutes", !st.Due.IsZero() && st.Due.Sub(s.Now()) <= 10*time.Minute, st)
				died := s.Crashes()
				s.Restart(harness.WithCode(right))
				s.OK(s.Retry(func() error {
					err := right.Resume(s.Context(), s, "1")
					if errors.Is(err, jobs.ErrIllegalMove) && status(s, right, "1").Meta.Status == jobs.Completed {
						return nil // the open has healed the run before, or the answer of the first Resume was lost
					}
					return err
				}))
				s.RunUntilIdle()
				st = status(s, right, "1")
				s.Always("healed at once", st.Meta.Status == jobs.Completed || s.Crashes() > died || died > 2, st)
				s.Advance(time.Minute)
				out, err := ends(s, right, "1")
				s.Always("the output", err == nil && out == "ab", out, err)
				s.Finally("nothing by the wrong code", func() error {
					if got := strings.Join(steps(s), " "); got != "a#1 b#1" {
						return fmt.Errorf("%s", got)
					}
					return nil
				})
			}, append(promises, crashes.Budget(60))...)
		})
	}
}

// Proves F10. The waits of a stuck run begin at one minute and double up to ten, and the code
// that is right again heals it at the next of them.
func TestStuckWaits(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		broken, tries := true, []time.Duration{}
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			tries = append(tries, s.Now().Sub(c.Now()))
			if broken {
				panic("at a loss")
			}
			return do(s, c, "a")
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(36 * time.Minute)
		want := []time.Duration{0, 1, 3, 7, 15, 25, 35}
		s.Always("as many tries", len(tries) == len(want), tries)
		for i, at := range want {
			d := tries[i] - at*time.Minute
			s.Always("at its time", d >= 0 && d < time.Second, i, " ", tries[i])
		}
		broken = false
		s.Advance(8 * time.Minute)
		s.Always("not before", status(s, w, "1").Meta.Status == jobs.Stuck)
		s.Advance(time.Minute + time.Second)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == "a", out, err)
	}, promises...)
}

// Proves F10, F11. A step that kills its process each time leaves its run stuck with the reason
// that its recoveries are used up. The runs beside it, which are in long steps, all end. Resume
// tries it again three times more, and a step that kills no more ends it.
// Case WF17.
func TestStepThatKillsItsProcess(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		deadly, kills := true, false
		runs := 0 // of the deadly step
		w := workflow.New[bool, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, killer bool) (string, error) {
			return workflow.Step(c, "a", func(ctx context.Context) (string, error) {
				if !killer {
					s.World().Do(workflow.Key(ctx), nil)
					return "a", s.SleepContext(ctx, 20*time.Second)
				}
				runs++
				if err := s.SleepContext(ctx, time.Second); err != nil {
					return "", err
				}
				if kills = deadly; deadly { // the scenario kills the process now
					s.Sleep(time.Hour)
				}
				return "survived", nil
			})
		})
		live := func(d time.Duration) {
			for end := s.Now().Add(d); s.Now().Before(end); s.Advance(time.Second) {
				if kills {
					s.Crash(harness.Kill)
					kills = false
					s.Restart()
				}
			}
		}
		s.Host(w)
		for i := range 10 {
			start(s, w, fmt.Sprint(i), false)
		}
		start(s, w, "killer", true)
		live(time.Hour)
		for i := range 10 {
			out, err := ends(s, w, fmt.Sprint(i))
			s.Always("the others end", err == nil && out == "a", i, out, err)
		}
		st := status(s, w, "killer")
		s.Always("stuck", st.Meta.Status == jobs.Stuck && strings.Contains(st.Meta.StopReason, "recoveries"), st)
		s.Always("at rest", st.Due.IsZero(), st)
		s.Always("bounded", s.Crashes() <= 8 && runs >= 4, s.Crashes(), runs)
		before, died := runs, s.Crashes()
		s.Advance(24 * time.Hour)
		s.Restart()
		s.Advance(time.Hour)
		s.Always("not by itself", runs == before)
		resume(s, w, "killer")
		live(time.Hour)
		st = status(s, w, "killer")
		s.Always("stuck again", st.Meta.Status == jobs.Stuck && st.Due.IsZero(), st)
		s.Always("three recoveries more", runs-before >= 4 && s.Crashes()-died <= 8, runs-before, s.Crashes()-died)
		deadly = false
		resume(s, w, "killer")
		s.Advance(time.Minute)
		out, err := ends(s, w, "killer")
		s.Always("healed", err == nil && out == "survived", out, err)
	}, promises...)
}

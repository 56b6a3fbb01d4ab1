package workflow_test

import (
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

// sends sends the signal until it is acknowledged.
func sends(s *harness.Sim, w workflow.Named, id, value string) {
	s.OK(s.Retry(func() error {
		return approved.Send(s.Context(), s, w, id, value, object.Idempotent(value, 0))
	}))
}

// answerOrLate begins a branch that waits for the signal, and one that sleeps for an hour.
func answerOrLate(s *harness.Sim, c *workflow.Context) (answer *workflow.Branch[string], late *workflow.Branch[int]) {
	answer = workflow.Go(c, "answer", func(c *workflow.Context) (string, error) {
		undoesNamed(s, c, "answer")
		v, err := approved.Wait(c, 0)
		if err != nil {
			return "", err
		}
		_, err = do(s, c, "answered")
		return v, err
	})
	late = workflow.Go(c, "late", func(c *workflow.Context) (int, error) {
		if err := workflow.Sleep(c, time.Hour); err != nil {
			return 0, err
		}
		_, err := do(s, c, "late")
		return 1, err
	})
	return answer, late
}

// Proves F5, F18. First of a signal and a sleep: the sleep wins, for ever, and the signal that comes
// afterwards is there for the next Wait. The undo of the loser runs if the function fails.
// Case WF21.
func TestCrashFirstOfASignalAndASleep(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			answer, late := answerOrLate(s, c)
			i, err := workflow.First(c, answer, late)
			if err != nil {
				return "", err
			}
			if i != 1 {
				return "", fmt.Errorf("%d has won", i)
			}
			if _, err := do(s, c, "decided"); err != nil { // First has returned before the signal comes
				return "", err
			}
			if _, err := answer.Wait(c); !errors.Is(err, workflow.ErrCancelled) {
				return "", fmt.Errorf("the loser: %w", err)
			}
			n, err := late.Wait(c)
			if err != nil {
				return "", err
			}
			v, err := approved.Wait(c, 0)
			if err != nil {
				return "", err
			}
			return "", fmt.Errorf("late %d, then %s", n, v)
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(90 * time.Minute)
		s.Always("decided", strings.Contains(strings.Join(steps(s), " "), "decided"), steps(s))
		sends(s, w, "1", "yes")
		s.Advance(time.Minute)
		_, err := ends(s, w, "1")
		s.Always("failed", errors.Is(err, workflow.ErrFailed) && strings.HasSuffix(err.Error(), ": late 1, then yes"), err)
		s.Finally("the effects", func() error {
			if strings.Contains(strings.Join(steps(s), " "), "answered") || s.World().Count("undone answer") == 0 {
				return fmt.Errorf("%v", s.World().Log())
			}
			return nil
		})
	}, promises...)
}

// Proves F18. The signal wins, and the sleep that is over later begins no step.
func TestCrashFirstSignalWins(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			answer, late := answerOrLate(s, c)
			i, err := workflow.First(c, late, answer)
			if err != nil || i != 1 {
				return "", fmt.Errorf("%d has won: %w", i, err)
			}
			if err := workflow.Sleep(c, 2*time.Hour); err != nil {
				return "", err
			}
			return answer.Wait(c)
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(time.Minute)
		sends(s, w, "1", "yes")
		s.Advance(3 * time.Hour)
		out, err := ends(s, w, "1")
		s.Always("completed", err == nil && out == "yes", out, err)
		s.Finally("no step of the loser", func() error {
			if got := strings.Join(steps(s), " "); got != "answered#1" || s.World().Count("undone answer") > 0 {
				return fmt.Errorf("%s", got)
			}
			return nil
		})
	}, promises...)
}

// Proves F5, F18. The signal comes at the instant at which the sleep is over: one of both wins for
// ever, and the signal is taken once, or there at the end.
func TestCrashFirstAtTheSameInstant(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			answer := workflow.Go(c, "answer", func(c *workflow.Context) (string, error) { return approved.Wait(c, 0) })
			late := workflow.Go(c, "late", func(c *workflow.Context) (int, error) { return 1, workflow.Sleep(c, time.Hour) })
			i, err := workflow.First(c, answer, late)
			if err != nil {
				return "", err
			}
			if err := workflow.Sleep(c, time.Hour); err != nil {
				return "", err
			}
			return do(s, c, fmt.Sprint("won", i))
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(time.Hour)
		sends(s, w, "1", "yes")
		s.Advance(2 * time.Hour)
		_, err := ends(s, w, "1")
		s.Always("completed", err == nil, err)
		winner, taken := "", 0
		for _, e := range entriesOf(s, w, "1") {
			switch e.Kind {
			case "first":
				winner = fmt.Sprint("won", e.Value[0], "#1")
			case "signal":
				taken++
			}
		}
		s.Always("the winner is recorded", fmt.Sprint(steps(s)) == "["+winner+"]" && taken <= 1, steps(s), winner)
		s.Always("a winner has its signal", winner != "won0#1" || taken == 1, winner, taken)
	}, promises...)
}

// Proves F7, F8, F18. A loser cleans up under WithoutCancel, also if the process dies right after
// the commit that records the winner, and the child of a loser is cancelled.
func TestCrashLoserCleansUp(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		leaf := workflow.New[int, int]("leaf", workflow.Config{})
		leaf.Func(func(c *workflow.Context, _ int) (int, error) { return 0, workflow.Sleep(c, 10*time.Hour) })
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			cleans := workflow.Go(c, "cleans", func(c *workflow.Context) (string, error) {
				err := workflow.Sleep(c, 10*time.Hour)
				if err != nil {
					_, _ = do(s, workflow.WithoutCancel(c), "cleaned")
				}
				return "", err
			})
			child := workflow.Go(c, "child", func(c *workflow.Context) (int, error) { return workflow.Child(c, leaf, "1", 1) })
			shielded := workflow.Go(workflow.WithoutCancel(c), "shielded", func(c *workflow.Context) (string, error) {
				if err := workflow.Sleep(c, 2*time.Hour); err != nil {
					return "", err
				}
				return do(s, c, "shielded")
			})
			wins := workflow.Go(c, "wins", func(c *workflow.Context) (string, error) { return "", workflow.Sleep(c, time.Hour) })
			i, err := workflow.First(c, cleans, child, shielded, wins)
			return fmt.Sprint(i), err
		})
		s.Host(w, leaf)
		start(s, w, "1", 7)
		s.Advance(90 * time.Minute)
		st := status(s, leaf, "1")
		s.Always("the child of the loser is cancelled", st.Meta.Status == jobs.Cancelled, st)
		s.Always("First waits for all", !status(s, w, "1").Meta.Status.Ended())
		s.Advance(time.Hour)
		out, err := ends(s, w, "1")
		s.Always("completed", err == nil && out == "3", out, err)
		happenedOnce := strings.Join(steps(s), " ")
		s.Always("cleaned up", strings.Contains(happenedOnce, "cleaned") && strings.Contains(happenedOnce, "shielded"), happenedOnce)
	}, promises...)
}

// Proves F18: the branch that has ended first wins, also if a Pause comes between its end and
// that of the others.
func TestFirstAcrossAPause(t *testing.T) {
	for n := range 4 {
		winner, sleeps := n/2, n%2 == 0
		harness.Run(t, func(s *harness.Sim) {
			w := workflow.New[int, int]("order", workflow.Config{})
			w.Func(func(c *workflow.Context, _ int) (int, error) {
				var all []workflow.Waiter
				for i := range 2 {
					all = append(all, workflow.Go(c, fmt.Sprint(i), func(c *workflow.Context) (string, error) {
						switch {
						case i == winner:
							return slow(s, c, "a", 2*time.Minute)
						case sleeps:
							return "", workflow.Sleep(c, 30*time.Minute)
						}
						return slow(s, c, "b", 3*time.Minute)
					}))
				}
				return workflow.First(c, all...)
			})
			s.Host(w)
			start(s, w, "1", 7)
			s.Advance(time.Minute)
			pause(s, w, "1", time.Time{})
			s.Advance(time.Hour)
			if !status(s, w, "1").Meta.Status.Ended() { // the end of a run comes before a pause
				resume(s, w, "1")
			}
			out, err := ends(s, w, "1")
			s.Always("the step wins", err == nil && out == winner, out, err)
		})
	}
}

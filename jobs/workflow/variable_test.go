package workflow_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// Proves F14. A branch sets a variable behind its last step, and the function has gone on since with
// another value. In each later repeat the branch comes to that place again, and shows nothing.
func TestCrashVarOfABranchBehind(t *testing.T) {
	sets := func(s *harness.Sim, c *workflow.Context) (int, error) {
		_, err := do(s, c, "a")
		shown.Set(c, "branch")
		return 0, err
	}
	ways := map[string]func(s *harness.Sim, c *workflow.Context) error{
		"each": func(s *harness.Sim, c *workflow.Context) error {
			_, err := workflow.Each(c, "parts", []int{1, 2}, 0, func(c *workflow.Context, _ int) (int, error) { return sets(s, c) })
			return err
		},
		"an each that fails": func(s *harness.Sim, c *workflow.Context) error {
			_, _ = workflow.Each(c, "parts", []int{1, 2}, 0, func(c *workflow.Context, _ int) (int, error) {
				_, err := sets(s, c)
				if err == nil {
					err = errNo
				}
				return 0, err
			})
			return nil
		},
		"a branch that has ended": func(s *harness.Sim, c *workflow.Context) error {
			_, err := workflow.Go(c, "part", func(c *workflow.Context) (int, error) { return sets(s, c) }).Wait(c)
			return err
		},
		"a loser": func(s *harness.Sim, c *workflow.Context) error {
			loser := workflow.Go(c, "part", func(c *workflow.Context) (int, error) {
				_, err := approved.Wait(c, 0)
				shown.Set(c, "branch")
				return 0, err
			})
			_, err := workflow.First(c, loser, workflow.Go(c, "quick", func(c *workflow.Context) (int, error) {
				return 0, workflow.Sleep(c, time.Minute)
			}))
			return err
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			crashes.Try(t, func(s *harness.Sim) {
				w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
				w.Func(func(c *workflow.Context, _ int) (string, error) {
					if err := way(s, c); err != nil {
						return "", err
					}
					if err := workflow.Sleep(c, 500*time.Millisecond); err != nil { // in which a loser sees that it has lost
						return "", err
					}
					shown.Set(c, "function")
					for range 3 {
						if err := workflow.Sleep(c, time.Hour); err != nil {
							return "", err
						}
					}
					return "done", errNo
				})
				s.Host(w)
				start(s, w, "1", 7)
				s.Advance(30 * time.Minute)
				for range 4 { // asleep three times, and at the end
					var v string
					s.OK(s.Retry(func() (err error) { v, _, err = shown.Get(s.Context(), s, w, "1"); return err }))
					s.Always("the value of the function", v == "function", v)
					s.Advance(time.Hour)
				}
			}, append(promises, crashes.Budget(60))...)
		})
	}
}

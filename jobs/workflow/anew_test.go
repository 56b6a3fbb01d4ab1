package workflow_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// Proves F7. A child in a branch that was given up, because another has failed, is cancelled then,
// and the run can begin anew.
func TestChildOfAGivenUpBranch(t *testing.T) {
	for _, open := range []bool{false, true} {
		harness.Run(t, func(s *harness.Sim) {
			children := newChildren(s)
			w := workflow.New[int, int]("order", workflow.Config{})
			w.Func(func(c *workflow.Context, n int) (int, error) {
				if n == 2 {
					return n, nil
				}
				if _, err := workflow.Child(c, children, "first", task{}); err != nil {
					return 0, err
				}
				if err := workflow.Sleep(c, time.Hour); err != nil {
					return 0, err
				}
				_, err := workflow.Each(c, "two", []int{0, 1}, 0, func(c *workflow.Context, i int) (int, error) {
					if i == 0 && open {
						return workflow.Child(c, children, "second", task{Sleeps: 24 * time.Hour})
					}
					if err := workflow.Sleep(c, time.Minute); err != nil {
						return 0, err
					}
					return 0, errors.New("given up")
				})
				if err == nil {
					return 0, errors.New("no error")
				}
				return w.ContinueAs(c, 2)
			})
			s.Host(w, children)
			start(s, w, "1", 1)
			s.Advance(90 * time.Minute)
			st := status(s, w, "1")
			s.Always("no child is open", st.Meta.Status == jobs.Completed, st)
			if open {
				second := status(s, children, "second")
				s.Always("its child is cancelled", second.Meta.Status == jobs.Cancelled && second.CancelReason == "another branch has failed", second)
			}
			out, err := ends(s, w, "1")
			s.Always("begun anew", err == nil && out == 2 && status(s, w, "1").Generation == 1, out, err)
		})
	}
}

package workflow_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// LookAt tells from the rows alone that the function of a run has failed, and which undo is under way:
// neither a branch that was given up nor a step that has failed is that.
func TestLookAtUndos(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[bool, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 3, Backoff: jobs.Constant(time.Hour)}})
		w.Func(func(c *workflow.Context, fails bool) (string, error) {
			for _, name := range []string{"first", "second"} {
				workflow.Undo(c, name, func(context.Context) error {
					if name == "first" {
						return errNo // tried again an hour later
					}
					return nil
				})
			}
			_, _ = workflow.Each(c, "each", []int{0}, 0, func(c *workflow.Context, _ int) (string, error) {
				return "", errNo
			})
			if fails {
				return "", errNo
			}
			return "", workflow.Sleep(c, 24*time.Hour)
		})
		s.Host(w)
		start(s, w, "fails", true)
		start(s, w, "sleeps", false)
		s.Advance(time.Minute)
		look := func(name string) (l workflow.Look) {
			s.OK(s.WithHost(func(_ context.Context, h *object.Host) error {
				return h.Store().Objects("order", "", func(o storage.Object) bool {
					if o.ID.Name == name {
						var ok bool
						var err error
						l, ok, err = workflow.LookAt(h.Store(), o)
						s.Always("a run", ok && err == nil, err)
					}
					return true
				})
			}))
			return l
		}
		l := look("fails")
		s.Always("it undoes", l.Undoing && l.Undo == "undo first", l.Undoing, l.Undo)
		l = look("sleeps")
		s.Always("it sleeps", !l.Undoing && l.Undo == "" && len(l.Waits) == 1, l)
	})
}

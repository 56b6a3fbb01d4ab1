package workflow_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// checked is a workflow with steps of these names, a signal behind them, and a last step.
func checked(names ...string) *workflow.Workflow[int, string] {
	w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
	w.Func(func(c *workflow.Context, n int) (string, error) {
		for _, name := range names {
			if name == "new" && !workflow.Patched(c, "new") {
				continue
			}
			if _, err := workflow.Step(c, name, func(context.Context) (int, error) { return n, nil }); err != nil {
				return "", err
			}
		}
		return approved.Wait(c, 0)
	})
	return w
}

// Check yields the runs that new code would make stuck, and List those without a patch.
func TestCheckAndList(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		old := checked("a", "b")
		s.Host(old)
		for _, id := range []string{"1", "2", "3"} {
			start(s, old, id, 1)
		}
		s.OK(approved.Send(s.Context(), s, old, "2", "yes"))
		s.RunUntilIdle()
		for want, w := range map[string]*workflow.Workflow[int, string]{
			"":   old,
			"b":  checked("a", "renamed"),
			"a":  checked("b", "a"),
			"-":  checked("a"),
			"+":  checked("a", "b", "c"),
			"ok": checked("a", "b", "new"),
		} {
			stuck := map[string]error{}
			for d, err := range w.Check(s.Context(), s.Store(), workflow.CheckOptions{}) {
				s.OK(err)
				stuck[d.ID] = d.Err
			}
			if want == "" || want == "+" || want == "ok" {
				s.Always("none is stuck", len(stuck) == 0, want, stuck)
				continue
			}
			s.Always("both unfinished runs are stuck", len(stuck) == 2 && stuck["2"] == nil, want, stuck)
			for _, err := range stuck {
				s.Always("they diverge", errors.Is(err, workflow.ErrDiverged), err)
				s.Always("the error names the place", want == "-" || strings.Contains(err.Error(), `step "`+want+`"`), err)
			}
		}
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			var all, waiting, done []string
			for l, err := range old.List(ctx, h, workflow.ListOptions{}) {
				s.OK(err)
				all = append(all, l.Meta.ID)
			}
			for l, err := range old.List(ctx, h, workflow.ListOptions{WithoutPatch: "new"}) {
				s.OK(err)
				waiting = append(waiting, l.Meta.ID)
			}
			for l, err := range old.List(ctx, h, workflow.ListOptions{Label: jobs.Completed}) {
				s.OK(err)
				done = append(done, l.Meta.ID)
			}
			s.Always("lists", len(all) == 3 && len(waiting) == 2 && len(done) == 1 && done[0] == "2", all, waiting, done)
			return nil
		}))
	})
}

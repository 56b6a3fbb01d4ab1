package harness_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// hosted is what each of these failures tells of a hosted workflow.
const hosted = "A workflow is hosted (trip): a function that does not do the same in each repeat, or a step that does not do the same in each run, is a usual cause"

// stepping is a scenario with a workflow of one step, which may do another thing in each run.
func stepping(step func(s *harness.Sim)) harness.Scenario {
	return func(s *harness.Sim) {
		w := workflow.New[string, string]("trip", workflow.Config{})
		w.Func(func(ctx *workflow.Context, to string) (string, error) {
			return workflow.Step(ctx, "book", func(context.Context) (string, error) {
				step(s)
				return to, nil
			})
		})
		s.Host(carts, w)
		s.OK(s.Retry(func() error { _, err := w.Start(s.Context(), s, "1", "Rome"); return err }))
		s.Advance(time.Minute)
	}
}

// told is a failure with one blank between its words.
func told(err error) string { return strings.Join(strings.Fields(fmt.Sprint(err)), " ") }

// A scenario that does not do the same each time is refused with a word about its workflow.
// Without one there is no such word.
func TestUnsteadyWorkflowIsTold(t *testing.T) {
	runs, draws := 0, rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		step func(s *harness.Sim)
		want string
	}{
		"a random key": {func(s *harness.Sim) { s.World().Do(fmt.Sprint("charge/", draws.Uint64()), nil) }, "two runs without a crash do not do the same"},
		"the second fails": {func(s *harness.Sim) {
			if runs++; runs == 2 {
				s.Errorf("no seat is left")
			}
		}, "The first run of the scenario did not fail, the second does"},
		"the third differs": {func(s *harness.Sim) {
			if runs++; runs > 2 {
				s.World().Do("extra", nil)
			}
			s.World().Do("charge", nil)
			s.World().Do("mail", nil)
		}, "of one run and point"},
	} {
		t.Run(name, func(t *testing.T) {
			runs = 0
			_, err := harness.Explore(stepping(c.step))
			if got := told(err); !strings.Contains(got, c.want) || !strings.Contains(got, hosted) {
				t.Errorf("it says %s", got)
			}
		})
	}
	for _, schedule := range []string{"v1:seed=0:crash=effect/after/never#1,keep=0", "v1:seed=0:lostanswer=effect/answer/never#1"} {
		if got := told(harness.Failed(stepping(func(*harness.Sim) {}), schedule)); !strings.Contains(got, "does not come to the") || !strings.Contains(got, hosted) {
			t.Errorf("a replay says %s", got)
		}
		if got := told(harness.Failed(cartScenario, schedule)); !strings.Contains(got, "does not come to the") || strings.Contains(got, "workflow") {
			t.Errorf("a replay without a workflow says %s", got)
		}
	}
}

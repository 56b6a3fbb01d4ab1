package workflow_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"pgregory.net/rapid"
)

// Proves F5, F18. A signal that comes while a First is decided is taken before it, and its entry
// stands before that of the winner, or it is not taken by the loser and is there for a later Wait.
func TestLoserTakesNoSignal(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, _ *rapid.T) {
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			answer := workflow.Go(c, "answer", func(c *workflow.Context) (string, error) {
				if err := workflow.Sleep(c, 500*time.Millisecond); err != nil {
					return "", err
				}
				return approved.Wait(c, 0)
			})
			late := workflow.Go(c, "late", func(c *workflow.Context) (int, error) { return 1, workflow.Sleep(c, 500*time.Millisecond) })
			i, err := workflow.First(c, answer, late)
			if err != nil || i == 0 {
				return "", err
			}
			return "late", workflow.Sleep(c, time.Hour)
		})
		s.Host(w)
		start(s, w, "1", 7)
		sends(s, w, "1", "yes")
		s.Advance(2 * time.Hour)
		_, err := ends(s, w, "1")
		s.Always("completed", err == nil, err)
		decided := false
		for _, e := range entriesOf(s, w, "1") {
			s.Always("the loser takes nothing", !decided || e.Kind != "signal", e)
			decided = decided || e.Kind == "first"
		}
	}, promises[1:]...)
}

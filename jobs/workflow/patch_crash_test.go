package workflow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// A deploy patches a step in before the one in flight, which keeps its key, and a later deploy
// drops the line of the patch. Now and Entries do not depend on it.
// Case 34.
func TestCrashPatch(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		version := 1
		code := func() *workflow.Workflow[int, string] {
			w := workflow.New[int, string]("order", workflow.Config{})
			w.Func(func(c *workflow.Context, _ int) (string, error) {
				if _, err := do(s, c, "a"); err != nil {
					return "", err
				}
				a := c.Now()
				if err := workflow.Sleep(c, 10*time.Millisecond); err != nil {
					return "", err
				}
				patched := version == 2 && workflow.Patched(c, "check")
				s.Always("the patch does not count, and its repeat sees no other time", c.Entries() == 2 && c.Now().Sub(a) == 10*time.Millisecond, c.Entries(), c.Now(), a)
				if patched || version == 3 {
					if _, err := do(s, c, "check"); err != nil {
						return "", err
					}
				}
				b, err := workflow.Step(c, "b", func(ctx context.Context) (string, error) {
					s.World().Do(workflow.Key(ctx), nil)
					return fmt.Sprint("b", version), s.SleepContext(ctx, time.Minute)
				})
				if err != nil {
					return "", err
				}
				if err := workflow.Sleep(c, 5*time.Minute); err != nil {
					return "", err
				}
				s.Always("entries", c.Entries() == 5, c.Entries())
				_, err = do(s, c, "c")
				return b, err
			})
			return w
		}
		w := code()
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(30 * time.Second) // within b
		s.Crash(harness.Kill)
		version = 2
		w = code()
		s.Restart(harness.WithCode(w))
		s.Advance(4 * time.Minute)
		st := status(s, w, "1")
		s.Always("asleep", len(st.Waits) == 1 && st.Waits[0].Kind == "sleep", st)
		version = 3
		w = code()
		s.Restart(harness.WithCode(w))
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == "b2", out, err)
		s.Finally("the effects", func() error {
			// A process that died before b ended may have done it before check.
			if got := strings.Join(effects(s, "order/1"), " "); got != "a b check b c" {
				return fmt.Errorf("effects %s", got)
			}
			return nil
		})
	}, append(promises, crashes.Budget(300))...)
}

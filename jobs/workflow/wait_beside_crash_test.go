package workflow_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// Proves F4. Branches wait, for a time, a signal and another attempt, beside one that does a long
// step. A crash in the step does not move the end of their waits.
func TestCrashWaitsBesideALongStep(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, []time.Duration]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, _ int) ([]time.Duration, error) {
			return workflow.Each(c, "part", []int{0, 1, 2, 3}, 0, func(c *workflow.Context, i int) (time.Duration, error) {
				began := c.Now()
				switch i {
				case 0:
					if err := workflow.Sleep(c, 10*time.Minute); err != nil {
						return 0, err
					}
				case 1:
					if _, err := approved.Wait(c, 10*time.Minute); !errors.Is(err, workflow.ErrTimeout) {
						return 0, fmt.Errorf("no timeout: %w", err)
					}
				case 2:
					err := failing(s, c, "fails", errNo, workflow.Retry(jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(10 * time.Minute)}))
					if err == nil {
						return 0, errors.New("no error")
					}
				case 3:
					_, err := slow(s, c, "long", 5*time.Minute)
					return 0, err
				}
				return c.Now().Sub(began), nil
			})
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(time.Hour)
		out, err := ends(s, w, "1")
		s.Always("completed", err == nil && len(out) == 4, out, err)
		for i, d := range out[:3] {
			s.Always("not earlier", d >= 10*time.Minute, i, d)
			s.Always("not moved", s.Crashes() > 2 || d < 11*time.Minute, i, d) // the third crash in a row holds the run back
		}
	}, append(promises, crashes.Budget(60))...)
}

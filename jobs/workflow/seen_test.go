package workflow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// Proves F3. Two calls of NearFull with nothing between them have one answer, also if other
// branches have filled the history meanwhile, and a repeat has it too.
func TestNearFullTwice(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		var seen []string
		w := workflow.New[int, int]("order", workflow.Config{MaxEntries: 20})
		w.Func(func(c *workflow.Context, _ int) (int, error) {
			_, err := workflow.Each(c, "part", []int{0, 1}, 0, func(c *workflow.Context, i int) (int, error) {
				if i == 0 {
					first := c.NearFull()
					s.SleepContext(context.Background(), time.Second)
					seen = append(seen, fmt.Sprint(first, " ", c.NearFull()))
					return 0, workflow.Sleep(c, time.Hour)
				}
				for range 15 {
					if _, err := do(s, c, "a"); err != nil {
						return 0, err
					}
				}
				return 0, nil
			})
			return 0, err
		})
		s.Host(w)
		start(s, w, "1", 0)
		s.Advance(30 * time.Minute)
		s.Restart()
		s.Advance(time.Hour)
		_, err := ends(s, w, "1")
		s.Always("the same each time", err == nil && len(seen) > 1 && strings.Count(strings.Join(seen, ";"), "false false") == len(seen), seen, err)
	})
}

// Proves F4. A run sleeps with its last entry and ends behind it. It is stuck only where it needs
// one more.
func TestSleepAtTheLimit(t *testing.T) {
	for more, want := range map[bool]jobs.Status{false: jobs.Completed, true: jobs.Stuck} {
		harness.Run(t, func(s *harness.Sim) {
			w := workflow.New[int, int]("order", workflow.Config{MaxEntries: 2})
			w.Func(func(c *workflow.Context, n int) (int, error) {
				if _, err := do(s, c, "a"); err != nil {
					return 0, err
				}
				err := workflow.Sleep(c, time.Hour)
				if err == nil && more {
					_, err = do(s, c, "b")
				}
				return n, err
			})
			s.Host(w)
			start(s, w, "1", 7)
			s.Advance(59 * time.Minute)
			st := status(s, w, "1")
			s.Always("asleep", st.Meta.Status == jobs.Running && len(st.Waits) == 1 && st.Entries == 2, st)
			s.Advance(2 * time.Minute)
			st = status(s, w, "1")
			s.Always("at its end", st.Meta.Status == want && strings.Contains(st.Meta.LastError, "the history is full") == more, st)
			happened(s, "order/1", "a")
		})
	}
}

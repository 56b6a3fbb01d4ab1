package workflow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// Proves F11. A run of twelve steps, of which each kills its process once, records a step between
// any two crashes, and so ends: progress takes back the crashes before it. A run whose first
// step kills its process twelve times is stuck before that.
func TestCrashesCountWithoutProgressOnly(t *testing.T) {
	const steps = 12
	for _, progress := range []bool{true, false} {
		harness.Run(t, func(s *harness.Sim) {
			kills := false
			left := make([]int, steps) // how often each step is still to kill
			left[0] = steps
			for i := range left {
				if progress {
					left[i] = 1
				}
			}
			w := workflow.New[int, int]("order", workflow.Config{})
			w.Func(func(c *workflow.Context, n int) (int, error) {
				for i := range n {
					_, err := workflow.Step(c, fmt.Sprint("s", i), func(ctx context.Context) (int, error) {
						if left[i] > 0 {
							left[i]--
							kills = true
							s.Sleep(time.Hour)
						}
						return i, nil
					})
					if err != nil {
						return 0, err
					}
				}
				return n, nil
			})
			s.Host(w)
			start(s, w, "1", steps)
			for range 900 {
				s.Advance(time.Second)
				if kills {
					s.Crash(harness.Kill)
					kills = false
					s.Restart()
				}
			}
			st := status(s, w, "1")
			if !progress {
				s.Always("stuck without progress", st.Meta.Status == jobs.Stuck && st.Entries == 0 && s.Crashes() < steps && s.Crashes() >= 4, st, s.Crashes())
				return
			}
			s.Always("ended with progress", st.Meta.Status == jobs.Completed && s.Crashes() == steps, st, s.Crashes())
			out, err := ends(s, w, "1")
			s.Always("the output", err == nil && out == steps, out, err)
		})
	}
}

// Proves F1, F2. A step is recorded before the next begins: once a step has had its effect, no
// crash brings back the one before it.
func TestCrashNoStepComesBack(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, int]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (int, error) {
			for i := range n {
				if _, err := do(s, c, fmt.Sprint(i)); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		s.Host(w)
		start(s, w, "1", 4)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == 4, out, err)
		s.Finally("no step comes back", func() error {
			last := ""
			for _, e := range s.World().Log() {
				if e.Key < last {
					return fmt.Errorf("step %s came after %s", e.Key, last)
				}
				last = e.Key
			}
			return nil
		})
	}, promises...)
}

package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// Proves F9. An undo that a branch registers before it does anything runs in its place, behind
// those that were registered later, also if the run sleeps between two undos.
func TestCrashUndoOfABranchWithoutEntries(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		mended := s.Now().Add(5 * time.Minute)
		w := workflow.New[int, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 100, Backoff: jobs.Constant(time.Minute)}})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			if _, err := do(s, c, "a"); err != nil {
				return "", err
			}
			undoes(s, c, "first")
			_, err := workflow.Each(c, "part", []int{0, 1}, 1, func(c *workflow.Context, i int) (int, error) {
				if i == 0 {
					undoes(s, c, "bare")
					return 0, nil
				}
				if _, err := do(s, c, "b"); err != nil {
					return 0, err
				}
				workflow.Undo(c, "slow", func(ctx context.Context) error {
					if s.Now().Before(mended) {
						return errNo
					}
					s.World().Do(workflow.Key(ctx), nil)
					return nil
				})
				return 0, errors.New("given up")
			})
			return "", err
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(time.Hour)
		_, err := ends(s, w, "1")
		s.Always("failed", errors.Is(err, workflow.ErrFailed) && strings.HasSuffix(err.Error(), ": item 1: given up"), err)
		happened(s, "order/1", "a", "part[1]/b", "undo/undo slow", "undo/undo bare", "undo/undo first")
	}, append(promises, crashes.Budget(60))...)
}

// Proves F9. A crash cuts off the step of a branch, which is not tried again because another
// branch has failed. The undo that the branch had registered before runs all the same.
func TestCrashUndoOfAStepThatWasCutOff(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 1}})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			_, err := workflow.Each(c, "part", []int{0, 1, 2}, 0, func(c *workflow.Context, i int) (int, error) {
				if i == 0 {
					return 0, failing(s, c, "breaks", errNo)
				}
				workflow.Undo(c, fmt.Sprint("u", i), func(context.Context) error {
					s.World().Do(fmt.Sprint("undone ", i), nil)
					return nil
				})
				_, err := slow(s, c, "s", time.Minute)
				return 0, err
			})
			return "", err
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(time.Hour)
		_, err := ends(s, w, "1")
		s.Always("failed", errors.Is(err, workflow.ErrFailed), err)
		s.Finally("each effect is undone", func() error {
			for i := 1; i <= 2; i++ {
				did, undone := 0, s.World().Count(fmt.Sprint("undone ", i))
				for _, e := range s.World().Log() {
					if strings.HasSuffix(e.Key, fmt.Sprintf("/part[%d]/s#1", i)) {
						did++
					}
				}
				if did > 0 && undone == 0 {
					return fmt.Errorf("branch %d did its step and has not undone it", i)
				}
			}
			return nil
		})
	}, append(promises, crashes.Budget(100))...)
}

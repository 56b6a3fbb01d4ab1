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
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Case 39: a child is removed by its Retention a minute after its end, while its parent is
// paused. The parent has its answer all the same.
func TestCrashChildIsPurgedFirst(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		child := workflow.New[int, string]("child", workflow.Config{Retention: jobs.Retention{Completed: time.Minute}})
		child.Func(func(c *workflow.Context, _ int) (string, error) {
			return "its answer", workflow.Sleep(c, time.Hour)
		})
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (string, error) { return workflow.Child(c, child, c.ID(), n) })
		s.Host(w, child)
		start(s, w, "1", 1)
		s.Advance(time.Minute)
		s.OK(s.Retry(func() error { return w.Pause(s.Context(), s, "1", "", time.Time{}) }))
		s.Advance(2 * time.Hour)
		s.OK(s.Retry(func() error {
			_, err := child.Status(s.Context(), s, "1")
			if errors.Is(err, jobs.ErrNotFound) {
				return nil
			}
			s.Always("the child is purged", harness.Unknown(err), err)
			return err
		}))
		resume(s, w, "1")
		out, err := ends(s, w, "1")
		s.Always("the answer", err == nil && out == "its answer", out, err)
	}, promises...)
}

// Proves F8. A child that was started WithoutCancel goes on when its parent is cancelled, and its
// answer counts.
func TestCrashChildWithoutCancel(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		children := newChildren(s)
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			v, err := workflow.Child(workflow.WithoutCancel(c), children, "c", task{N: n, Sleeps: time.Hour})
			if err != nil {
				return "", err
			}
			_, err = do(s, c, "never")
			return fmt.Sprint(v, " ", errors.Is(err, workflow.ErrCancelled)), nil
		})
		s.Host(w, children)
		start(s, w, "1", 7)
		s.Advance(time.Minute)
		cancelRun(s, w, "1", "enough")
		s.Advance(2 * time.Hour)
		st := status(s, children, "c")
		s.Always("the child has completed", st.Meta.Status == jobs.Completed && !st.Cancelling, st)
		out, err := ends(s, w, "1")
		s.Always("its answer counts", err == nil && out == "7 true", out, err)
		happened(s, "order/1")
	}, append(familyPromises, crashes.Budget(60))...)
}

// The mark of a cancel that came before the start of its child goes a month later, and the
// object that it was all of.
func TestMarkOfAnEarlyCancelGoes(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		children := newChildren(s)
		forgers, cancel := newForgers()
		s.Host(children, forgers)
		_, err := cancel.Call(s.Context(), s, "1", cancelling{parentOf{"order", strings.Repeat("y", storage.MaxNameBytes), "life", 0, 1}})
		s.OK(err)
		exists := func() (exists bool) {
			s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
				in, err := h.Inspect(ctx, storage.ID{Class: "child", Name: "c"})
				exists = in.Exists
				return err
			}))
			return exists
		}
		s.Advance(29 * 24 * time.Hour)
		s.Always("the mark is kept", exists())
		s.Advance(12 * 24 * time.Hour)
		s.Always("the mark is gone", !exists())
		s.Always("no dead letter", len(letters(s)) == 0, letters(s))
	})
}

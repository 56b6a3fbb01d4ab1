package workflow_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// Retry of a run whose last step has failed tries that step again, under the same key and with
// all its attempts, and takes the dead letter away.
// Case WF15.
func TestCrashRetryLastStep(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		heals := false
		w := workflow.New[int, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Minute)}})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			if _, err := do(s, c, "a"); err != nil {
				return "", err
			}
			_, err := workflow.Step(c, "b", func(ctx context.Context) (int, error) {
				s.World().Do("try/"+workflow.Key(ctx), nil)
				if !heals {
					return 0, errNo
				}
				return 1, nil
			})
			if err != nil {
				return "", err
			}
			return do(s, c, "c")
		})
		s.Host(w)
		start(s, w, "1", 7)
		_, err := ends(s, w, "1")
		s.Always("failed", errors.Is(err, workflow.ErrFailed), err)
		s.Always("one dead letter", len(letters(s)) == 1, letters(s))
		retry(s, w, "1") // in vain
		_, err = ends(s, w, "1")
		s.Always("failed again", errors.Is(err, workflow.ErrFailed), err)
		s.Always("one dead letter still", len(letters(s)) == 1, letters(s))
		entries := entriesOf(s, w, "1")
		s.Always("two attempts of this Retry", len(entries) == 4 && entries[1].Kind == "try" && entries[2].Attempts == 2 && entries[3].Kind == "fail", entries)
		heals = true
		retry(s, w, "1")
		out, err := ends(s, w, "1")
		s.Always("completed", err == nil && out == "c", out, err)
		s.Always("no dead letter", len(letters(s)) == 0, letters(s))
		s.Finally("one key", func() error {
			keys := map[string]bool{}
			for _, e := range s.World().Log() {
				if strings.HasPrefix(e.Key, "try/") {
					keys[e.Key] = true
				}
			}
			s.Always("one key", len(keys) == 1, keys)
			for key := range keys {
				n := s.World().Count(key)
				s.Always("five attempts", n >= 5 && n <= 5+s.Crashes(), n)
			}
			return nil
		})
		happened(s, "order/1", "a", "c")
	}, promises...)
}

// Retry of a run that has undone its steps, or that failed without a step, returns ErrUndone
// and changes nothing.
func TestCrashRetryUndone(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[bool, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 1}})
		w.Func(func(c *workflow.Context, undo bool) (string, error) {
			if _, err := do(s, c, "a"); err != nil {
				return "", err
			}
			if !undo {
				return "", errNo
			}
			undoes(s, c, "a")
			return "", failing(s, c, "b", errNo)
		})
		s.Host(w)
		retryRefused(s, w, "1", true, "its undos have run")
		retryRefused(s, w, "2", false, "the last thing that it did is no step that has failed")
		happened(s, "order/1", "a", "undo/undo a")
		happened(s, "order/2", "a")
	}, promises...)
}

func retryRefused(s *harness.Sim, w *workflow.Workflow[bool, string], id string, undo bool, text string) {
	start(s, w, id, undo)
	_, err := ends(s, w, id)
	s.Always("failed", errors.Is(err, workflow.ErrFailed), err)
	before, entries := status(s, w, id), entriesOf(s, w, id)
	err = s.Retry(func() error { return w.Retry(s.Context(), s, id) })
	s.Always("refused", errors.Is(err, workflow.ErrUndone) && strings.HasSuffix(err.Error(), text), err)
	s.Advance(time.Minute)
	after := status(s, w, id)
	s.Always("nothing has changed", after.Meta.Status == jobs.Failed && after.Meta.UpdatedAt.Equal(before.Meta.UpdatedAt) && len(entriesOf(s, w, id)) == len(entries), after)
}

// Retry of a run that has not failed is refused, and so is that of none.
func TestRetryRefused(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			return "fine", workflow.Sleep(c, time.Duration(n)*time.Hour)
		})
		s.Host(w)
		start(s, w, "1", 0)
		start(s, w, "2", 1)
		s.Advance(time.Minute)
		for _, id := range []string{"1", "2"} {
			err := w.Retry(s.Context(), s, id)
			var moved *jobs.MoveError
			s.Always("refused", errors.As(err, &moved), err)
		}
		s.Always("not found", errors.Is(w.Retry(s.Context(), s, "3"), jobs.ErrNotFound))
	})
}

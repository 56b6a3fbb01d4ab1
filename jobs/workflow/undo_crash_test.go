package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// undoes registers an undo with one outside effect.
func undoes(s *harness.Sim, c *workflow.Context, name string) {
	workflow.Undo(c, name, func(ctx context.Context) error {
		s.World().Do(workflow.Key(ctx), nil)
		return nil
	})
}

// A saga fails at each of its steps in turn, and at last behind them. Each completed step is
// undone, in the reverse order, and no other (F9).
func TestCrashSaga(t *testing.T) {
	steps := []string{"a", "b", "c"}
	for fails := range len(steps) + 1 {
		t.Run(fmt.Sprint("fails at ", fails), func(t *testing.T) {
			crashes.Try(t, func(s *harness.Sim) {
				w := workflow.New[int, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 1}})
				w.Func(func(c *workflow.Context, _ int) (string, error) {
					for i, name := range steps {
						_, err := workflow.Step(c, name, func(ctx context.Context) (int, error) {
							if i == fails {
								return 0, errNo
							}
							s.World().Do(workflow.Key(ctx), nil)
							return i, nil
						})
						if err != nil {
							return "", err
						}
						undoes(s, c, name)
					}
					return "", errNo
				})
				s.Host(w)
				start(s, w, "1", 7)
				_, err := ends(s, w, "1")
				text := "no"
				if fails < len(steps) {
					text = fmt.Sprintf(`step %q: no`, steps[fails])
				}
				s.Always("failed", errors.Is(err, workflow.ErrFailed) && strings.HasSuffix(err.Error(), text), err)
				s.Always("one dead letter", slices.Equal(letters(s), []string{text}), letters(s))
				want := slices.Clone(steps[:fails])
				for _, name := range slices.Backward(steps[:fails]) {
					want = append(want, "undo/undo "+name)
				}
				happened(s, "order/1", want...)
			}, append(promises, crashes.Budget(60))...)
		})
	}
}

// An undo fails twice and is tried again, at last by code that no longer returns the error and
// has further steps. The failure stands, and no further step begins. A deferred function with
// an operation disturbs neither.
func TestCrashUndoRetried(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		code := func(mended bool) *workflow.Workflow[int, string] {
			w := workflow.New[int, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 100, Backoff: jobs.Constant(time.Minute)}})
			w.Func(func(c *workflow.Context, _ int) (string, error) {
				defer shown.Set(c, "left")
				for _, name := range []string{"a", "b", "c"} {
					if _, err := do(s, c, name); err != nil {
						return "", err
					}
					workflow.Undo(c, name, func(ctx context.Context) error {
						if !mended && name == "b" {
							return errNo
						}
						s.World().Do(workflow.Key(ctx), nil)
						return nil
					})
				}
				if !mended {
					return "", errors.New("the first error")
				}
				_, err := do(s, c, "never")
				return "fine", err
			})
			return w
		}
		w := code(false)
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(90 * time.Second)
		st := status(s, w, "1")
		s.Always("the undo is tried again", len(st.Waits) == 1 && st.Waits[0].Kind == "retry" && st.Waits[0].Name == "undo b", st)
		w = code(true)
		s.Restart(harness.WithCode(w))
		out, err := ends(s, w, "1")
		s.Always("failed", errors.Is(err, workflow.ErrFailed) && strings.HasSuffix(err.Error(), ": the first error"), out, err)
		for _, e := range entriesOf(s, w, "1") {
			s.Always("the waits", e.Kind != "try" || e.Name == "undo b" && e.Until.Sub(e.At) == time.Minute, e)
		}
		s.Always("one dead letter", slices.Equal(letters(s), []string{"the first error"}), letters(s))
		happened(s, "order/1", "a", "b", "c", "undo/undo c", "undo/undo b", "undo/undo a")
	}, promises...)
}

// The code of the second process returns before its operations come to the failure, or makes
// none: the recorded failure stands all the same.
func TestCrashUndoOtherEnd(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		code := func(mended bool) *workflow.Workflow[int, string] {
			w := workflow.New[int, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 100, Backoff: jobs.Constant(time.Minute)}})
			w.Func(func(c *workflow.Context, _ int) (string, error) {
				if _, err := do(s, c, "a"); err != nil {
					return "", err
				}
				workflow.Undo(c, "a", func(ctx context.Context) error {
					if !mended {
						return errNo
					}
					s.World().Do(workflow.Key(ctx), nil)
					return nil
				})
				defer shown.Set(c, "left") // at the end of the goroutine too
				if mended {
					return "fine", nil
				}
				return "", errors.New("the first error")
			})
			return w
		}
		w := code(false)
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(30 * time.Second)
		w = code(true)
		s.Restart(harness.WithCode(w))
		_, err := ends(s, w, "1")
		s.Always("failed", errors.Is(err, workflow.ErrFailed) && strings.HasSuffix(err.Error(), ": the first error"), err)
		happened(s, "order/1", "a", "undo/undo a")
	}, promises...)
}

var shown = workflow.NewVar[string]("shown")

// Proves F9, F12. An undo that is given up stops the rest and fails the run with its error. Retry
// goes on with it, and takes the dead letter away.
func TestCrashUndoGivenUp(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		heals := false
		w := workflow.New[int, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Minute)}})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			for _, name := range []string{"a", "b", "c"} {
				if _, err := do(s, c, name); err != nil {
					return "", err
				}
				workflow.Undo(c, name, func(ctx context.Context) error {
					if name == "b" && !heals {
						return errNo
					}
					s.World().Do(workflow.Key(ctx), nil)
					return nil
				})
			}
			return "", errors.New("the first error")
		})
		s.Host(w)
		start(s, w, "1", 7)
		_, err := ends(s, w, "1")
		const text = `undo "b": step "undo b": no`
		s.Always("failed", errors.Is(err, workflow.ErrFailed) && strings.HasSuffix(err.Error(), text), err)
		s.Always("one dead letter", slices.Equal(letters(s), []string{text}), letters(s))
		s.Always("the rest is not undone", effects(s, "order/1")[len(effects(s, "order/1"))-1] == "undo/undo c", effects(s, "order/1"))
		heals = true
		retry(s, w, "1")
		_, err = ends(s, w, "1")
		s.Always("failed by itself", errors.Is(err, workflow.ErrFailed) && strings.HasSuffix(err.Error(), ": the first error"), err)
		s.Always("another dead letter", slices.Equal(letters(s), []string{"the first error"}), letters(s))
		happened(s, "order/1", "a", "b", "c", "undo/undo c", "undo/undo b", "undo/undo a")
	}, promises...)
}

// retry lets a failed run go on until the answer is known: a repeat of the call may find that
// it goes on already.
func retry[In, Out any](s *harness.Sim, w *workflow.Workflow[In, Out], id string) {
	asked := false
	s.OK(s.Retry(func() error {
		err := w.Retry(s.Context(), s, id)
		var moved *jobs.MoveError
		if asked && errors.As(err, &moved) {
			return nil
		}
		asked = true
		return err
	}))
}

package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// failures are the names of the completed steps in the dead letters of the host and in the events
// of a run's failures.
func failures(s *harness.Sim, w *workflow.Workflow[int, string], id string) (letters, events [][]string) {
	type named struct {
		jobs.Event
		Steps []string
	}
	s.OK(s.Retry(func() error {
		letters, events = nil, nil
		return s.WithHost(func(ctx context.Context, h *object.Host) error {
			all, err := h.DeadLetters(ctx, object.DeadLettersOptions{})
			for _, l := range all.Letters {
				var of named
				err = errors.Join(err, json.Unmarshal(l.Data, &of))
				letters = append(letters, of.Steps)
			}
			told, err2 := h.Events(ctx, w.ID(id), 0, 1000)
			for _, e := range told {
				var of named
				if e.Kind == jobs.EventFailed {
					err = errors.Join(err, json.Unmarshal(e.Data, &of))
					events = append(events, of.Steps)
					s.Always("the error", of.Error != "", of)
				}
			}
			return errors.Join(err, err2)
		})
	}))
	return letters, events
}

// Proves F12. The dead letter and the event of a failure name the steps that have completed: those of
// branches too, and neither the step that has failed nor the undos.
func TestCrashFailureNamesItsSteps(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 1}})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			if _, err := do(s, c, "a"); err != nil {
				return "", err
			}
			undoes(s, c, "undo of a")
			_, err := workflow.Each(c, "items", []string{"x", "y"}, 1, func(c *workflow.Context, name string) (string, error) {
				return do(s, c, name)
			})
			if err != nil {
				return "", err
			}
			if _, err := workflow.Atomic(c, "move", func(context.Context, *workflow.Tx) (int, error) { return 1, nil }); err != nil {
				return "", err
			}
			return workflow.Step(c, "fails", func(context.Context) (string, error) { return "", errNo })
		})
		s.Host(w)
		start(s, w, "1", 7)
		_, err := ends(s, w, "1")
		s.Always("failed", errors.Is(err, workflow.ErrFailed), err)
		letters, events := failures(s, w, "1")
		want := []string{"a", "items[0]/x", "items[1]/y", "move"}
		for _, got := range [][][]string{letters, events} {
			s.Always("one, with the completed steps", len(got) == 1 && slices.Equal(got[0], want), letters, events)
		}
	}, promises...)
}

// Proves F12. The letter and the event name at most 100 steps.
func TestFailureNamesAHundredSteps(t *testing.T) {
	for _, n := range []int{0, 100, 101} {
		harness.Run(t, func(s *harness.Sim) {
			w := workflow.New[int, string]("order", workflow.Config{})
			w.Func(func(c *workflow.Context, n int) (string, error) {
				for i := range n {
					if _, err := do(s, c, fmt.Sprint(i)); err != nil {
						return "", err
					}
				}
				return "", errNo
			})
			s.Host(w)
			start(s, w, "1", n)
			_, err := ends(s, w, "1")
			s.Always("failed", errors.Is(err, workflow.ErrFailed), err)
			letters, events := failures(s, w, "1")
			for _, got := range [][][]string{letters, events} {
				s.Always("the first hundred", len(got) == 1 && len(got[0]) == min(n, 100), n, got)
			}
		})
	}
}

// Proves F12. An event that would be too large with the names has the error alone, and the run
// fails all the same.
func TestFailureWithoutRoomForItsSteps(t *testing.T) {
	for _, long := range []int{30, 60} {
		harness.Run(t, func(s *harness.Sim) {
			w := workflow.New[int, string]("order", workflow.Config{})
			w.Func(func(c *workflow.Context, n int) (string, error) {
				for i := range n {
					if _, err := do(s, c, fmt.Sprintf("%0*d", long, i)); err != nil {
						return "", err
					}
				}
				return "", errNo
			})
			s.Host(w)
			start(s, w, "1", 80)
			_, err := ends(s, w, "1")
			s.Always("failed", errors.Is(err, workflow.ErrFailed), err)
			letters, events := failures(s, w, "1")
			s.Always("the letter has room", len(letters) == 1 && len(letters[0]) == 80, letters)
			s.Always("told", len(events) == 1 && len(events[0]) == map[int]int{30: 80}[long], events)
		}, harness.HostOptions(func(o *object.Options) { o.MaxValueBytes = 4096 }))
	}
}

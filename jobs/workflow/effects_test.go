package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// effectName is the scope and the name of the step that has the key, without the number of a
// first one, for example: undo/undo b.
func effectName(key string) string {
	parts := strings.SplitN(key, "/", 5)
	return strings.TrimSuffix(parts[len(parts)-1], "#1")
}

// effects are the names of the effects of a run in order. Repeats in a row count as one.
func effects(s *harness.Sim, run string) (names []string) {
	for _, e := range s.World().Log() {
		if name := effectName(e.Key); strings.HasPrefix(e.Key, run+"/") && (len(names) == 0 || names[len(names)-1] != name) {
			names = append(names, name)
		}
	}
	return names
}

// happened checks at the end that a run had exactly these effects in this order, each once and
// once more at most for each crash.
func happened(s *harness.Sim, run string, want ...string) {
	s.Finally("the effects of "+run, func() error {
		if got := effects(s, run); !slices.Equal(got, want) {
			return fmt.Errorf("effects %q, want %q", got, want)
		}
		return onceEach(s, run+"/")
	})
}

// onceEach returns the error of an effect, with a key that begins with prefix, that came more
// often than once and once more for each crash.
func onceEach(s *harness.Sim, prefix string) error {
	for _, e := range s.World().Log() {
		if n := s.World().Count(e.Key); strings.HasPrefix(e.Key, prefix) && n > 1+s.Crashes() {
			return fmt.Errorf("effect %q happened %d times with %d crashes", e.Key, n, s.Crashes())
		}
	}
	return nil
}

// timesOf are the times of the effects with a name, counted from a time.
func timesOf(s *harness.Sim, run, name string, from time.Time) (at []time.Duration) {
	for _, e := range s.World().Log() {
		if strings.HasPrefix(e.Key, run+"/") && effectName(e.Key) == name {
			at = append(at, e.Time.Sub(from))
		}
	}
	return at
}

// entriesOf reads the history of a run.
func entriesOf[In, Out any](s *harness.Sim, w *workflow.Workflow[In, Out], id string) (entries []workflow.Entry) {
	s.OK(s.Retry(func() (err error) {
		entries, err = w.History(s.Context(), s, id, 0, 0)
		return err
	}))
	return entries
}

// cancelRun cancels a run until the answer is known.
func cancelRun[In, Out any](s *harness.Sim, w *workflow.Workflow[In, Out], id, reason string) {
	s.OK(s.Retry(func() error { return w.Cancel(s.Context(), s, id, reason) }))
}

// letters are the errors of the dead letters of the host.
func letters(s *harness.Sim) (errs []string) {
	s.OK(s.Retry(func() error {
		return s.WithHost(func(ctx context.Context, h *object.Host) error {
			all, err := lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage}))
			errs = nil
			for _, l := range all {
				errs = append(errs, l.LastError)
			}
			return err
		})
	}))
	return errs
}

// slow is a step with an effect at its begin that then takes a while, and returns early with
// the cause if its context ends.
func slow(s *harness.Sim, c *workflow.Context, name string, d time.Duration, opts ...workflow.StepOption) (string, error) {
	return workflow.Step(c, name, func(ctx context.Context) (string, error) {
		s.World().Do(workflow.Key(ctx), nil)
		return name, s.SleepContext(ctx, d)
	}, opts...)
}

var errNo = errors.New("no")

// lettersOf passes on the letters of a page.
func lettersOf(page object.DeadLetterPage, err error) ([]object.DeadLetter, error) {
	return page.Letters, err
}

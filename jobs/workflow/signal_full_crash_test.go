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
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// bell is an object that sends signals with the Outbox of its State.
type bell struct{ st *object.State }

// newBells returns the class of the bells, and a method that sends a signal to the run "1" of w.
func newBells[In, Out any](w *workflow.Workflow[In, Out]) (*object.Class[bell], *object.Method[string, int]) {
	class := object.Define("bell", func(_ context.Context, st *object.State) (*bell, error) { return &bell{st}, nil })
	return class, object.Handle(class, "ring", func(b *bell, ctx context.Context, v string) (int, error) {
		return 0, approved.Send(ctx, b.st.Outbox(), w, "1", v)
	})
}

// ring has a bell send a signal, once.
func ring(s *harness.Sim, m *object.Method[string, int], v string) {
	s.OK(s.Retry(func() error {
		_, err := m.Call(s.Context(), s, "b", v, object.Idempotent("ring "+fmt.Sprint(len(v), v[:1]), 0))
		return err
	}))
}

// deadLetters are the dead letters of the host.
func deadLetters(s *harness.Sim) (all []object.DeadLetter) {
	s.OK(s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
		page, err := h.DeadLetters(ctx, object.DeadLettersOptions{})
		all = page.Letters
		return err
	}))
	return all
}

// Proves J19, F5, F7. The signals of a run are full while the result of its child comes, and two more
// were sent as messages. The result overtakes them, they wait at no attempt, and the run takes
// all in their order.
func TestCrashFullOfSignalsBesideChild(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		children := newChildren(s)
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		workflow.LimitSignals(w, 2)
		w.Func(func(c *workflow.Context, n int) (string, error) {
			out, err := workflow.Child(c, children, "c", task{N: n, Sleeps: time.Minute})
			text := fmt.Sprint(out)
			for range 4 {
				if err != nil {
					return "", err
				}
				var v string
				v, err = approved.Wait(c, time.Hour)
				text += " " + v
			}
			return text, err
		})
		bells, method := newBells(w)
		s.Host(w, children, bells)
		start(s, w, "1", 7)
		for _, v := range []string{"a", "b"} {
			send(s, w, "1", v, v)
		}
		for _, v := range []string{"c", "d"} {
			ring(s, method, v)
		}
		s.Advance(5 * time.Minute)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == "7 a b c d", out, err)
		s.Finally("one child, no dead letter", func() error {
			if all := deadLetters(s); len(all) > 0 {
				return fmt.Errorf("dead letters %v", all)
			}
			return errors.Join(once(s, "c"), familyEnds(s, "order", "child"))
		})
	}, familyPromises...)
}

// Proves J19. A signal that was sent to a run which takes none for two hours waits without an
// attempt, in its order. One that comes after the end of the run is a dead letter at once.
func TestSentSignalsWaitForTheRun(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		workflow.LimitSignals(w, 2)
		w.Func(func(c *workflow.Context, _ int) (text string, err error) {
			err = workflow.Sleep(c, 2*time.Hour)
			for range 4 {
				if err != nil {
					return "", err
				}
				var v string
				v, err = approved.Wait(c, time.Minute)
				text += v
			}
			return text, err
		})
		bells, method := newBells(w)
		s.Host(w, bells)
		start(s, w, "1", 7)
		for _, v := range []string{"a", "b"} {
			send(s, w, "1", v, v)
		}
		err := approved.Send(s.Context(), s, w, "1", "z")
		s.Always("a call is refused", errors.Is(err, workflow.ErrBusy), err)
		s.Always("the refusal says nothing to a run", !object.IsPermanent(err) && !object.Retryable(err), err)
		for _, v := range []string{"c", "d"} {
			ring(s, method, v)
		}
		s.Advance(2*time.Hour - time.Second)
		n, err := crashes.UnderWay(s.Store(), "order")
		s.Always("both wait", err == nil && n == 2 && len(deadLetters(s)) == 0, n, err)
		s.Advance(2 * time.Minute)
		out, err := ends(s, w, "1")
		s.Always("in their order", err == nil && out == "abcd", out, err)
		ring(s, method, "late")
		s.RunUntilIdle()
		all := deadLetters(s)
		s.Always("too late", len(all) == 1 && all[0].Attempts == 1 && strings.Contains(all[0].LastError, "the run has ended"), all)
	})
}

// Proves J19. A signal that is too large for the entry that would take it is a dead letter at its first
// attempt, because no repeat makes it smaller.
func TestSentSignalTooLarge(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, _ int) (string, error) { return approved.Wait(c, 0) })
		bells, method := newBells(w)
		s.Host(w, bells)
		start(s, w, "1", 7)
		ring(s, method, strings.Repeat("x", entryLimit-1))
		ring(s, method, strings.Repeat("y", entryLimit-2))
		out, err := ends(s, w, "1")
		s.Always("the greatest is taken", err == nil && len(out) == entryLimit-2 && out[0] == 'y', len(out), err)
		all := deadLetters(s)
		s.Always("the larger is dead", len(all) == 1 && all[0].Attempts == 1 && strings.Contains(all[0].LastError, "signal \"approved\" has 3073 bytes, the limit is 3072 bytes: store it outside and send its name"), all)
	}, harness.HostOptions(func(o *object.Options) { o.MaxValueBytes = 4096 }))
}

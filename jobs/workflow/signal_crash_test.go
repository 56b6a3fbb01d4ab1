package workflow_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// send sends a signal until the answer is known. The key makes it one signal.
func send[In, Out any](s *harness.Sim, w *workflow.Workflow[In, Out], id, value, key string) {
	s.OK(s.Retry(func() error {
		return approved.Send(s.Context(), s, w, id, value, object.Idempotent(key, 0))
	}))
}

// A signal is taken once whether it comes before the wait, in its instant, or when the run
// waits for it (F5).
func TestCrashSignalAroundWait(t *testing.T) {
	for _, at := range []time.Duration{0, time.Minute - 1, time.Minute, time.Minute + 1, time.Hour} {
		t.Run(at.String(), func(t *testing.T) {
			crashes.Try(t, func(s *harness.Sim) {
				w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
				w.Func(func(c *workflow.Context, _ int) (string, error) {
					if _, err := slow(s, c, "a", time.Minute); err != nil {
						return "", err
					}
					v, err := approved.Wait(c, 2*time.Hour)
					if err != nil {
						return "", err
					}
					_, err = do(s, c, v)
					return v, err
				})
				s.Host(w)
				start(s, w, "1", 7)
				s.Advance(at)
				send(s, w, "1", "yes", "1")
				s.Advance(time.Hour)
				out, err := ends(s, w, "1")
				s.Always("the signal", err == nil && out == "yes", out, err)
				taken := 0
				for _, e := range entriesOf(s, w, "1") {
					if e.Kind == "signal" {
						taken++
						s.Always("no timeout", !e.TimedOut && string(e.Value) == `"yes"`, e)
					}
				}
				s.Always("taken once", taken == 1, taken)
				happened(s, "order/1", "a", "yes")
			}, append(promises, crashes.Budget(60))...)
		})
	}
}

// A signal that comes in the instant of the timeout, or just after it, is either taken or too
// late, and that is so for ever. One that is too late waits for the next Wait.
// Case 36.
func TestCrashSignalAtTimeout(t *testing.T) {
	for _, late := range []time.Duration{0, 1} {
		t.Run(late.String(), func(t *testing.T) {
			crashes.Try(t, func(s *harness.Sim) { signalAtTimeout(s, late) }, append(promises, crashes.Budget(300))...)
		})
	}
}

func signalAtTimeout(s *harness.Sim, late time.Duration) {
	w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
	w.Func(func(c *workflow.Context, _ int) (string, error) {
		first, err := approved.Wait(c, time.Minute)
		if errors.Is(err, workflow.ErrTimeout) {
			first, err = "timeout", nil
		}
		if err == nil {
			_, err = do(s, c, first)
		}
		if err == nil {
			err = workflow.Sleep(c, time.Minute) // and a repeat
		}
		if err != nil {
			return "", err
		}
		second, err := approved.Wait(c, time.Hour)
		if errors.Is(err, workflow.ErrTimeout) {
			return first + " alone", nil
		}
		return first + " " + second, err
	})
	s.Host(w)
	start(s, w, "1", 7)
	sent := false
	s.Go("client", func() {
		s.Sleep(time.Minute + late)
		send(s, w, "1", "yes", "1")
		sent = true
	})
	s.Eventually(5*time.Minute, "the signal is sent", func() bool { return sent })
	s.Advance(2 * time.Hour)
	out, err := ends(s, w, "1")
	s.Sometimes("each outcome", late == 0 && out == "yes alone" || late > 0 && out == "timeout yes")
	s.Always("nothing lost", err == nil && (out == "yes alone" || out == "timeout yes"), out, err)
	if out == "yes alone" {
		happened(s, "order/1", "yes")
	} else {
		happened(s, "order/1", "timeout")
	}
}

// The moment before the timeout, the timeout itself, and the moment after it.
func TestSignalAtTimeout(t *testing.T) {
	for at, want := range map[time.Duration]string{
		time.Hour - 1: "yes after 59m59.999999999s", time.Hour + 1: "workflow: timed out: no signal \"approved\" in 1h0m0s after 1h0m0s",
	} {
		t.Run(at.String(), func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
				w.Func(func(c *workflow.Context, _ int) (string, error) {
					began := c.Now()
					v, err := approved.Wait(c, time.Hour)
					if err != nil {
						v = err.Error()
					}
					return fmt.Sprintf("%s after %s", v, c.Now().Sub(began)), workflow.Sleep(c, time.Minute)
				})
				s.Host(w)
				start(s, w, "1", 7)
				s.Advance(at)
				send(s, w, "1", "yes", "1")
				out, err := ends(s, w, "1")
				s.Always("the outcome", err == nil && out == want, out, err)
			})
		})
	}
}

// A signal that is sent again with its key is taken once, also after it was taken, in other
// processes and by waits that come later.
func TestCrashRepeatedSignal(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			v, err := approved.Wait(c, 0)
			if err != nil {
				return "", err
			}
			if _, err := do(s, c, v); err != nil {
				return "", err
			}
			second, err := approved.Wait(c, 5*time.Minute)
			if !errors.Is(err, workflow.ErrTimeout) {
				return "", fmt.Errorf("the repeat %q was taken: %w", second, err)
			}
			return v, nil
		})
		s.Host(w)
		start(s, w, "1", 7)
		send(s, w, "1", "yes", "k")
		send(s, w, "1", "yes", "k")
		s.Advance(time.Minute)
		send(s, w, "1", "yes", "k")
		s.Restart()
		send(s, w, "1", "yes", "k")
		out, err := ends(s, w, "1")
		s.Always("once", err == nil && out == "yes", out, err)
		happened(s, "order/1", "yes")
	}, promises...)
}

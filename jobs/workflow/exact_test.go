package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves J4. An input that cannot be encoded is refused, and nothing is stored. A child with such a name
// that no object can have is an error of the Child alone, and its run goes on.
func TestStartsThatAreRefused(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		odd := workflow.New[func(), int]("odd", workflow.Config{})
		odd.Func(func(*workflow.Context, func()) (int, error) { return 0, nil })
		w := workflow.New[string, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, id string) (string, error) {
			_, err := workflow.Child(c, w, id, "")
			return err.Error(), nil
		})
		s.Host(odd, w)
		_, err := odd.Start(s.Context(), s, "1", func() {})
		s.Always("refused", errors.Is(err, jobs.ErrInvalid) && strings.Contains(err.Error(), "encode the input"), err)
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			all, err := h.Objects(ctx, "odd", object.ObjectsOptions{Limit: 10})
			s.Always("nothing is stored", len(all) == 0, all)
			return err
		}))
		for run, id := range map[string]string{"empty": "", "long": strings.Repeat("x", 1025)} {
			start(s, w, run, id)
			out, err := ends(s, w, run)
			s.Always("the error of the Child", err == nil && strings.Contains(out, object.ErrBadName.Error()), out, err)
		}
	})
}

// Proves F8. A Cancel ends the context of the step under way at once, and a run that is paused goes on to
// its end. The status of a run that has ended tells of no wait and no Cancel under way.
func TestCancelIsHeardAtOnce(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[bool, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, steps bool) (string, error) {
			if steps {
				return slow(s, c, "a", time.Hour)
			}
			return approved.Wait(c, 0)
		})
		s.Host(w)
		start(s, w, "steps", true)
		start(s, w, "waits", false)
		s.Advance(time.Minute)
		s.OK(w.Pause(s.Context(), s, "waits", "lunch", time.Time{}))
		s.Always("paused", status(s, w, "waits").Meta.Status == jobs.Paused, status(s, w, "waits"))
		for _, id := range []string{"steps", "waits"} {
			before := s.Now()
			s.OK(w.Cancel(s.Context(), s, id, "no more"))
			_, err := ends(s, w, id)
			s.Always("cancelled", errors.Is(err, workflow.ErrCancelled), id, err)
			s.Always("at once", s.Now().Sub(before) < time.Second, id, s.Now().Sub(before))
			st := status(s, w, id)
			s.Always("the status of the end", len(st.Waits) == 0 && !st.Cancelling && st.CancelReason == "no more", id, st)
		}
	})
}

// Proves F5. A branch that waits for a signal takes it when it comes, although another is in a long step.
func TestSignalBesideALongStep(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		var came time.Time
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			got, err := workflow.Each(c, "both", []int{0, 1}, 0, func(c *workflow.Context, i int) (string, error) {
				if i == 0 {
					return slow(s, c, "a", 5*time.Minute)
				}
				v, err := approved.Wait(c, 0)
				if came.IsZero() {
					came = s.Now()
				}
				return v, err
			})
			return strings.Join(got, " "), err
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(time.Minute)
		s.OK(approved.Send(s.Context(), s, w, "1", "yes"))
		sent := s.Now()
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == "a yes", out, err)
		s.Always("taken at once", came.Sub(sent) < time.Second, came.Sub(sent))
	})
}

// Proves F3. The error of an Each is told as a cancel or as a timeout only if its branch was cancelled or
// timed out, and so in the repeat.
func TestErrorOfAnEach(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[bool, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, waits bool) (string, error) {
			_, err := workflow.Each(c, "each", []int{0}, 0, func(c *workflow.Context, _ int) (string, error) {
				if waits {
					return approved.Wait(c, time.Minute)
				}
				return "", errNo
			})
			if err := workflow.Sleep(c, time.Hour); err != nil { // the rest is a repeat
				return "", err
			}
			return fmt.Sprint(errors.Is(err, workflow.ErrCancelled), errors.Is(err, workflow.ErrTimeout)), nil
		})
		s.Host(w)
		for id, want := range map[string]string{"fails": "false false", "waits": "false true"} {
			start(s, w, id, id == "waits")
			s.Advance(2 * time.Hour)
			out, err := ends(s, w, id)
			s.Always("the error", err == nil && out == want, id, out, err)
		}
	})
}

// Proves F5. A signal that the store has no room for is refused, and the run goes on to wait for it.
func TestSignalWithoutRoom(t *testing.T) {
	limit := 0
	w := workflow.New[string, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
	w.Func(func(c *workflow.Context, _ string) (string, error) { return approved.Wait(c, 0) })
	harness.Run(t, func(s *harness.Sim) {
		s.Host(w)
		start(s, w, "1", "x")
		s.Advance(time.Minute)
		limit = 5 // bytes of a key: fewer than that of a signal has
		s.Restart()
		err := approved.Send(s.Context(), s, w, "1", "yes")
		s.Always("refused", errors.Is(err, object.ErrKeyTooLarge), err)
		limit = 0
		s.Restart()
		st := status(s, w, "1")
		s.Always("it waits", len(st.Waits) == 1, st)
		s.OK(approved.Send(s.Context(), s, w, "1", "no"))
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == "no", out, err)
	}, harness.HostOptions(func(o *object.Options) { o.MaxKeyBytes = limit }))
}

// Proves O17. The fn of an Atomic that finds no space is called again a second later, and so on until there is space, in
// one life of the function. After its entry it is not called again.
func TestAtomicWaitsForSpace(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		lives, tries := 0, []time.Time{}
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, full int) (string, error) {
			lives++
			return workflow.Atomic(c, "a", func(context.Context, *workflow.Tx) (string, error) {
				if tries = append(tries, s.Now()); len(tries) <= full {
					return "", fmt.Errorf("a call: %w", object.ErrNoSpace)
				}
				return "done", nil
			})
		})
		s.Host(w)
		start(s, w, "1", 3)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == "done", out, err)
		s.Always("one life and four calls of fn", lives == 1 && len(tries) == 4, lives, tries)
		for i := 1; i < len(tries); i++ {
			s.Always("a second later", tries[i].Sub(tries[i-1]) == time.Second, tries)
		}
	})
}

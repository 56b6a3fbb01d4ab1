package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Proves F15. A run that has no place is due since the time at which it might have gone on: that of
// the signal, of the Cancel or of its timer, and not that of its suspension. The event, the status
// and the alarm agree, and the next turn and the next instance tell the same.
func TestQueuedSince(t *testing.T) {
	const unit = time.Second
	for name, c := range map[string]struct {
		wait  time.Duration // of the signal; 0: without end
		wake  func(s *harness.Sim, w *workflow.Workflow[int, string])
		after time.Duration // from the start to the time since which it is due
	}{
		"signal": {0, func(s *harness.Sim, w *workflow.Workflow[int, string]) { send(s, w, "2", "x", "x") }, 100 * unit},
		"cancel": {0, func(s *harness.Sim, w *workflow.Workflow[int, string]) {
			s.OK(w.Cancel(s.Context(), s, "2", "no more"))
		}, 100 * unit},
		"timer":                {30 * unit, func(s *harness.Sim, w *workflow.Workflow[int, string]) { pauseAndResume(s, w, "2") }, 30 * unit},
		"signal after timer":   {30 * unit, func(s *harness.Sim, w *workflow.Workflow[int, string]) { send(s, w, "2", "x", "x") }, 30 * unit},
		"signal before timer":  {200 * unit, func(s *harness.Sim, w *workflow.Workflow[int, string]) { send(s, w, "2", "x", "x") }, 100 * unit},
		"signal at that timer": {100 * unit, func(s *harness.Sim, w *workflow.Workflow[int, string]) { send(s, w, "2", "x", "x") }, 100 * unit},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				w := workflow.New[int, string]("order", workflow.Config{Concurrency: 1, Signals: workflow.Signals{approved}})
				w.Func(func(ctx *workflow.Context, n int) (string, error) {
					if n == 2 {
						if out, err := approved.Wait(ctx, c.wait); err != nil {
							return out, err
						}
						return approved.Wait(ctx, 0)
					}
					return slow(s, ctx, "a", 1000*unit)
				})
				s.Host(w)
				began := s.Now()
				start(s, w, "2", 2) // is suspended at once
				s.Advance(unit)
				start(s, w, "1", 1) // has the place
				s.Advance(99 * unit)
				c.wake(s, w)
				due := began.Add(c.after)
				look := func(when string) {
					st, at := status(s, w, "2"), newestAt(s, w.ID("2"), workflow.EventQueued)
					s.Always(when, st.Queued && st.Due.Equal(due) && at.Equal(due), when, " due ", st.Due.Sub(began), " told ", at.Sub(began), " want ", c.after, st)
					s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
						in, err := h.Inspect(ctx, w.ID("2"))
						s.Always("the alarm", err == nil && in.Alarm != nil && in.Alarm.Due.Equal(due), in.Alarm, err)
						return nil
					}))
				}
				look("at once")
				s.Advance(unit)
				send(s, w, "2", "y", "y")
				look("after another turn")
				s.Advance(3 * time.Minute) // longer than IdleAfter, so the run is read from its rows
				look("in another instance")
			}, promises...)
		})
	}
}

// Proves F15. A run that has waited for a place before is due since the second of its signals when that
// finds no place either.
func TestQueuedSinceTheSecondTime(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Concurrency: 1, Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			if n == 1 {
				return slow(s, c, "a", time.Minute)
			}
			if out, err := approved.Wait(c, 0); err != nil {
				return out, err
			}
			return approved.Wait(c, 0)
		})
		s.Host(w)
		start(s, w, "2", 2)
		for _, first := range []string{"1", "3"} {
			s.Advance(time.Hour)
			start(s, w, first, 1)
			at := s.Now()
			send(s, w, "2", "x", first)
			st := status(s, w, "2")
			s.Always("due since the signal", st.Queued && st.Due.Equal(at), at, st)
			s.Always("told", newestAt(s, w.ID("2"), workflow.EventQueued).Equal(at))
			s.Advance(2 * time.Minute)
		}
		out, err := ends(s, w, "2")
		s.Always("ended", err == nil && out == "x", out, err)
	}, promises...)
}

// newestAt is the time At of the newest event of a kind.
func newestAt(s *harness.Sim, id storage.ID, kind string) (at time.Time) {
	s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
		events, err := h.Events(ctx, id, 0, 1000)
		for _, e := range events {
			var of jobs.Event
			if e.Kind == kind {
				err = errors.Join(err, json.Unmarshal(e.Data, &of))
				at = of.At
			}
		}
		return err
	}))
	return at
}

// pauseAndResume are turns of a run that change nothing of its waits.
func pauseAndResume(s *harness.Sim, w *workflow.Workflow[int, string], id string) {
	pause(s, w, id, time.Time{})
	resume(s, w, id)
}

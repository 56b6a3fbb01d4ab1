package harness_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// leaver ends its goroutine when its alarm fires.
type leaver struct{ st *object.State }

func (l *leaver) Alarm(context.Context, object.AlarmInfo) error {
	runtime.Goexit()
	return nil
}

var leavers = object.Define("leaver", func(_ context.Context, st *object.State) (*leaver, error) { return &leaver{st}, nil })

var leaveSoon = object.Handle(leavers, "leave soon", func(l *leaver, ctx context.Context, _ struct{}) (struct{}, error) {
	return struct{}{}, l.st.SetAlarm(ctx, l.st.Now().Add(time.Minute))
})

// Case HN4: when a handler ends its goroutine, the failure names the task of the handler,
// and not the scenario.
func TestHandlerThatEndsItsGoroutine(t *testing.T) {
	mustSay(t, problemOf(t, func(s *harness.Sim) {
		s.Host(leavers)
		_, err := leaveSoon.Call(s.Context(), s, "a", struct{}{})
		s.OK(err)
		s.Advance(time.Hour)
	}), `task "`, "ended its goroutine by runtime.Goexit", "(*leaver).Alarm")
}

// The scenario itself may not end its goroutine either.
func TestScenarioThatEndsItsGoroutine(t *testing.T) {
	mustSay(t, problemOf(t, func(*harness.Sim) { runtime.Goexit() }), "ended its goroutine")
}

// visit starts a routine that ends its goroutine on purpose, behind a deferred recover.
var visit = object.Handle(leavers, "visit", func(l *leaver, ctx context.Context, _ struct{}) (struct{}, error) {
	return struct{}{}, l.st.Go(ctx, "visitor", func(context.Context) {
		defer func() { _ = recover() }()
		seam.Exit(l.st.Driver().Seams().Executor)
	})
})

// A routine that ends its goroutine by seam.Exit is no failure, also after a crash at each
// point, and keeps its object in memory no longer.
func TestRoutineThatExitsOnPurpose(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		s.Host(leavers)
		s.OK(s.Retry(func() error {
			_, err := visit.Call(s.Context(), s, "a", struct{}{})
			return err
		}))
		s.Advance(time.Hour)
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			in, err := h.Inspect(ctx, leavers.ID("a"))
			s.Always("the object has left memory", !in.Live)
			return err
		}))
	})
}

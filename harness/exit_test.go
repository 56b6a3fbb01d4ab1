package harness_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
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

// Case HN4: a handler that ends its goroutine is named with its task; the scenario
// is not blamed for it.
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

package harness_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// A jump of the wall clock while calls wait does not make them old. Proves O11.
func TestClockJumpIsNoOverload(t *testing.T) {
	class := object.Define("slow", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	work := object.Handle(class, "work", func(st *object.State, ctx context.Context, d time.Duration) (int, error) {
		return 0, st.Driver().Seams().Sleep(ctx, d)
	})
	harness.Exhaust(t, func(s *harness.Sim) {
		s.Host(class)
		for i := range 4 {
			s.Go("client", func() {
				s.Sleep(time.Duration(i) * 200 * time.Millisecond)
				_, err := work.Call(s.Context(), s, "busy", time.Second)
				s.OK(err)
			})
		}
		for range 5 {
			s.Must(work.Call(s.Context(), s, "other", 0))
			s.Advance(200 * time.Millisecond)
		}
		s.Advance(time.Minute)
	}, harness.AllowFaults(harness.Faults{ClockJump: 24 * time.Hour}))
}

package object_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object"
)

type slowBell struct {
	s  *harness.Sim
	st *object.State
}

func (b *slowBell) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	b.s.Sleep(2 * time.Second)
	return b.st.Storage().Put(ctx, "rung", true)
}

// Proves A8. After two crashes in a row both alarms are suspects; wherever a further
// crash comes, while they are held back or tried, both ring in the end and none is
// dead.
func TestTrialsSurviveCrashes(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		class := object.Define("bell", func(_ context.Context, st *object.State) (*slowBell, error) { return &slowBell{s, st}, nil })
		set := object.Handle(class, "set", func(b *slowBell, ctx context.Context, _ int) (int, error) {
			return 0, b.st.SetAlarm(ctx, b.st.Now())
		})
		rung := object.Handle(class, "rung", func(b *slowBell, ctx context.Context, _ int) (bool, error) {
			_, ok, err := b.st.Storage().Get(ctx, "rung")
			return ok, err
		})
		s.Host(class)
		names := []string{"a", "b"}
		for _, name := range names {
			s.OK(s.Retry(func() error {
				_, err := set.Call(s.Context(), s, name, 0, object.Idempotent("set", 0))
				return err
			}))
		}
		for range 2 {
			s.Advance(time.Second)
			s.Crash(harness.Kill)
			s.Restart()
		}
		s.Advance(10 * time.Second)
		s.Finally("both have rung", func() error {
			for _, name := range names {
				ok, err := rung.Call(s.Context(), s, name, 0)
				if err != nil {
					return err
				}
				s.Always("A8: it rings", ok, name)
			}
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				letters, err := lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage}))
				s.Always("A8: none is dead", len(letters) == 0, letters)
				return err
			})
		})
	}, harness.Depth(2), crashes.Budget(400))
}

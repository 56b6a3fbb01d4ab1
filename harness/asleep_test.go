package harness_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

const year = 365 * 24 * time.Hour

// sleeper is an object that is woken by its alarm.
type sleeper struct {
	st   *object.State
	woke *time.Time
}

func (l *sleeper) Alarm(context.Context, object.AlarmInfo) error {
	*l.woke = l.st.Now()
	return nil
}

// A year in which the objects of a host sleep on disk takes a few steps, because no timer of
// the host rings while no object is in memory. An object leaves memory between IdleAfter and
// one and a half of it after its last turn, before the year and after it.
//
// Case ST12. Proves O10.
func TestAYearAsleepTakesFewSteps(t *testing.T) {
	const idle = time.Minute
	harness.Run(t, func(s *harness.Sim) {
		var woke time.Time
		sleepers := object.Define("sleeper", func(_ context.Context, st *object.State) (*sleeper, error) { return &sleeper{st, &woke}, nil },
			object.ClassOptions{IdleAfter: idle})
		sleep := object.Handle(sleepers, "sleep", func(l *sleeper, ctx context.Context, d time.Duration) (struct{}, error) {
			return struct{}{}, l.st.SetAlarm(ctx, l.st.Now().Add(d))
		})
		yearly := continuous.New(continuous.Config[struct{}]{
			Name: "yearly", Schedule: jobs.Every(year),
			Run: func(context.Context, *continuous.Run[struct{}]) error { return nil },
		})
		s.Host(sleepers, yearly)
		live := func(id storage.ID) (live bool) {
			s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
				in, err := h.Inspect(ctx, id)
				live = in.Live
				return err
			}))
			return live
		}
		inMemoryForItsTime := func(when string) {
			s.Advance(idle - time.Millisecond)
			s.Always(when+": in memory until IdleAfter", live(sleepers.ID("a")))
			s.Advance(idle/2 + time.Millisecond)
			s.Always(when+": out of memory after one and a half of it", !live(sleepers.ID("a")))
		}
		began := s.Now()
		_, err := sleep.Call(s.Context(), s, "a", year)
		s.OK(err)
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			_, err := yearly.Start(ctx, h, "y", struct{}{})
			return err
		}))
		inMemoryForItsTime("before the year")
		s.Advance(time.Hour)
		before := s.Steps()
		s.Advance(7 * 24 * time.Hour)
		if n := s.Steps() - before; n > 10 {
			s.Fatalf("a week asleep took %d steps", n)
		}
		s.Advance(began.Add(year - time.Second).Sub(s.Now()))
		if n := s.Steps() - before; n > 10 {
			s.Errorf("a year asleep took %d steps", n)
		}
		s.Advance(time.Second)
		s.Always("woken at its time", woke.Equal(began.Add(year)), woke)
		inMemoryForItsTime("after the year")
	})
}

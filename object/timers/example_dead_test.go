package timers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/timers"
)

// feed is an object that polls a service, which may be down.
type feed struct{ timers *timers.Timers }

func (f *feed) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return f.timers.Alarm(ctx, info)
}

// A timer that has failed too often is a dead letter. Replay tries it again, and Discard
// drops it.
func ExampleTimers_Replay() {
	down := true
	feeds := object.Define("feed", func(ctx context.Context, st *object.State) (*feed, error) {
		f := &feed{}
		var err error
		f.timers, err = timers.Attach(ctx, st, timers.Options{Retry: alarm.Retry{MaxAttempts: 2}}, func(context.Context, timers.Timer) error {
			if down {
				return errors.New("no answer")
			}
			fmt.Println("polled")
			return nil
		})
		return f, err
	}, timers.ClassOptions(object.ClassOptions{}))
	poll := object.Handle(feeds, "poll", func(f *feed, ctx context.Context, at time.Time) (int, error) {
		return 0, f.timers.At(ctx, "poll", at, nil)
	})
	replay := object.Handle(feeds, "replay", func(f *feed, ctx context.Context, seq uint64) (int, error) {
		return 0, f.timers.Replay(ctx, seq)
	})
	discard := object.Handle(feeds, "discard", func(f *feed, ctx context.Context, seq uint64) (int, error) {
		return 0, f.timers.Discard(ctx, seq)
	})

	simulate(func(s *harness.Sim) {
		s.Host(feeds)
		s.Must(poll.Call(s.Context(), s, "news", s.Now()))
		s.Advance(time.Minute)
		var page object.DeadLetterPage
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
			page, err = h.DeadLetters(ctx, object.DeadLettersOptions{Kind: timers.DeadTimer})
			return err
		}))
		d := page.Letters[0]
		fmt.Println(d.Kind, string(d.Data), d.Attempts, d.Reason)
		down = false
		s.Must(replay.Call(s.Context(), s, "news", d.Seq))
		s.Advance(time.Minute)
		_, err := discard.Call(s.Context(), s, "news", d.Seq)
		fmt.Println(errors.Is(err, object.ErrNoDeadLetter))
	})
	// Output:
	// timer {"timer":"poll"} 2 retries used up
	// polled
	// true
}

// simulate runs a scenario in virtual time.
func simulate(scenario harness.Scenario) { harness.Run(&testing.T{}, scenario) }

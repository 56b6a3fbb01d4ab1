package object_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// ringing counts the timers that ring.
type ringing struct {
	seam.Clock
	rang *atomic.Int64
}

func (c ringing) AfterFunc(d time.Duration, f func()) seam.Timer {
	return c.Clock.AfterFunc(d, func() { c.rang.Add(1); f() })
}

const (
	year = 365 * 24 * time.Hour
	week = year / 52
)

// While no object can leave memory, no timer rings: a week costs a handful of them. The
// one object sleeps on disk until its alarm, sleeps in a work, in a turn that is lent out
// or in a turn that is not, or may stay in memory for a year.
//
// Case ST12. Proves O10.
func TestASleepingObjectCostsNoTimers(t *testing.T) {
	asleep := func(ctx context.Context) error {
		timer := time.NewTimer(week)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		return nil
	}
	for what, sleep := range map[string]action{
		"alarm": setAlarm(week),
		"work": func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Go(ctx, "sleep", func(ctx context.Context) { _ = asleep(ctx) })
		},
		"lent": func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Release(ctx, asleep) },
		"turn": func(_ *thing, ctx context.Context) (any, error) { return nil, asleep(ctx) },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var rang atomic.Int64
				f := newFixture(t)
				f.options.Seams = seam.Seams{}.WithDefaults()
				f.options.Seams.Clock = ringing{f.options.Seams.Clock, &rang}
				// A class without objects in memory rings for nothing either.
				f.open(object.Define("other", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil }, object.ClassOptions{IdleAfter: time.Second}))
				defer f.close()
				done := make(chan struct{})
				go func() { defer close(done); f.must("a", sleep) }()
				pass(week - time.Second)
				most := int64(10)
				if what == "alarm" { // the clock is looked at once a minute while an alarm is set (A9)
					most += int64(week / time.Minute)
				}
				if n := rang.Load(); n > most {
					t.Errorf("%d timers rang in a week", n)
				}
				pass(2 * time.Second)
				<-done
				if in, err := f.host.Inspect(context.Background(), f.id("a")); !in.Live || err != nil {
					t.Errorf("just awake, it is in memory: %v, %v", in.Live, err)
				}
				pass(2 * time.Minute)
				if in, err := f.host.Inspect(context.Background(), f.id("a")); in.Live || err != nil {
					t.Errorf("idle again, it is in memory: %v, %v", in.Live, err)
				}
			})
		})
	}
}

// Objects of a class that keeps them in memory for long cause few sweeps. An object of
// another class that comes later still leaves memory in time.
//
// Case ST12. Proves O10.
func TestSweepsFollowTheClassesInMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var rang atomic.Int64
		f := newFixture(t, object.ClassOptions{IdleAfter: year})
		f.options.Seams = seam.Seams{}.WithDefaults()
		f.options.Seams.Clock = ringing{f.options.Seams.Clock, &rang}
		quick := object.Define("quick", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil }, object.ClassOptions{IdleAfter: time.Minute})
		touch := object.Handle(quick, "touch", func(*struct{}, context.Context, int) (int, error) { return 0, nil })
		f.open(quick)
		defer f.close()
		f.must("a", nothing)
		pass(year / 4)
		if n := rang.Load(); n > 2 {
			t.Errorf("%d timers rang in a quarter of a year", n)
		}
		if _, err := touch.Call(context.Background(), f.host, "b", 0); err != nil {
			t.Fatal(err)
		}
		live := func(id string) bool {
			synctest.Wait()
			in, err := f.host.Inspect(context.Background(), quick.ID(id))
			if err != nil {
				t.Fatal(err)
			}
			return in.Live
		}
		pass(59 * time.Second)
		if !live("b") {
			t.Error("it left memory before its time")
		}
		pass(time.Minute)
		if live("b") {
			t.Error("it is in memory after its time")
		}
		if in, err := f.host.Inspect(context.Background(), f.id("a")); !in.Live || err != nil {
			t.Errorf("the other one is in memory: %v, %v", in.Live, err)
		}
	})
}

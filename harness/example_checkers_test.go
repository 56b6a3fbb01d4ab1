package harness_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// crash runs a scenario with all its crashes, and prints the findings of the checkers.
func crash(scenario harness.Scenario, checkers ...harness.Option) {
	_, err := harness.Explore(scenario, checkers...)
	var found *harness.Failure
	if errors.As(err, &found) {
		fmt.Println(found.Problem)
		return
	}
	fmt.Println("all promises hold")
}

// bell is an object that rings once, a minute after it was set.
type bell struct{ st *object.State }

func (b *bell) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	return b.st.Storage().Put(ctx, "rang", true)
}

// ring is a scenario: a bell is set, and two minutes go by.
func ring(s *harness.Sim) {
	bells := object.Define("bell", func(_ context.Context, st *object.State) (*bell, error) { return &bell{st}, nil })
	set := object.Handle(bells, "set", func(b *bell, ctx context.Context, _ struct{}) (time.Time, error) {
		at := b.st.Now().Add(time.Minute)
		return at, b.st.SetAlarm(ctx, at)
	})
	s.Host(bells)
	s.OK(s.Retry(func() error { _, err := set.Call(s.Context(), s, "b", struct{}{}); return err }))
	s.Advance(2 * time.Minute)
}

// NoLostAck needs no model: it looks at each reply, at the moment it leaves.
func ExampleNoLostAck() {
	crash(ring, harness.NoLostAck)
	// Output: all promises hold
}

// NoTornBatch compares Pebble with a map that was given the same commits.
func ExampleNoTornBatch() {
	crash(ring, harness.NoTornBatch, harness.PebbleStore())
	// Output: all promises hold
}

// OneAlarm looks at every alarm that a crash leaves.
func ExampleOneAlarm() {
	crash(ring, harness.OneAlarm)
	// Output: all promises hold
}

// sender sends from its alarm.
type sender struct {
	s       *harness.Sim
	st      *object.State
	failing bool
}

func (x *sender) Alarm(_ context.Context, info object.AlarmInfo) error {
	x.s.World().Do("send/"+x.st.Name(), nil)
	if x.failing && info.Attempt <= 1 {
		return object.RetryAfter(5*time.Second, errors.New("no answer"))
	}
	return nil
}

// AtMostOncePerCrash allows a repeat after a crash, and finds any other. This
// object sends, then fails, and so sends again when its alarm is retried.
func ExampleAtMostOncePerCrash() {
	crash(func(s *harness.Sim) {
		class := object.Define("sender", func(_ context.Context, st *object.State) (*sender, error) {
			return &sender{s, st, true}, nil
		})
		on := object.Handle(class, "on", func(x *sender, ctx context.Context, _ int) (int, error) { return 0, x.st.SetAlarm(ctx, x.st.Now()) })
		s.Host(class)
		s.Must(on.Call(s.Context(), s, "one", 0))
		s.Advance(time.Minute)
	}, harness.AtMostOncePerCrash("send/"))
	// Output: AtMostOncePerCrash: the effect "send/one" was done at 0s by start 1, and again at 5s by start 1, with no crash between
}

// Record notes the answer that a client got to a call.
func ExampleRecord() {
	var h harness.History
	_, _ = harness.Record(&h, "cart/alice", 5, func() (int, error) { return 5, nil })
	_, _ = harness.Record(&h, "cart/alice", 5, func() (int, error) { return 0, object.ErrOverloaded })
	_, _ = harness.Record(&h, "cart/alice", 5, func() (int, error) { return 0, object.ErrStorage })
	for _, o := range h.Operations() {
		fmt.Println(o)
	}
	// Output:
	// 5 -> 5
	// 5 -> refused
	// 5 -> unknown
}

// OutcomeOf tells whether the call of an error may have happened.
func ExampleOutcomeOf() {
	fmt.Println(harness.OutcomeOf(nil), harness.OutcomeOf(object.ErrOverloaded), harness.OutcomeOf(object.ErrStorage))
	// Output: ack refused unknown
}

// Objects call one another with the same methods that a scenario uses; a crash in
// the middle of such a call is a point like any other. Here the money is in one purse
// and not yet out of the other when the process dies between the two commits.
func ExampleExplore_severalObjects() {
	type purse struct {
		st    *object.State
		cents int
	}
	purses := object.Define("purse", func(ctx context.Context, st *object.State) (*purse, error) {
		p := &purse{st: st, cents: 100}
		_, err := st.Storage().GetInto(ctx, "cents", &p.cents)
		return p, err
	})
	put := object.Handle(purses, "put", func(p *purse, ctx context.Context, n int) (int, error) {
		p.cents += n
		return p.cents, p.st.Storage().Put(ctx, "cents", p.cents)
	})
	give := object.Handle(purses, "give", func(p *purse, ctx context.Context, n int) (int, error) {
		if _, err := put.Call(ctx, p.st, "bob", n); err != nil {
			return 0, err
		}
		p.cents -= n
		return p.cents, p.st.Storage().Put(ctx, "cents", p.cents)
	})
	crash(func(s *harness.Sim) {
		s.Host(purses)
		s.Must(give.Call(s.Context(), s, "alice", 30))
		s.Finally("no money is made or lost", func() error {
			total := 0
			for _, name := range []string{"alice", "bob"} {
				cents := 100
				if _, err := harness.Stored(s.Store(), purses.ID(name), "cents", &cents); err != nil {
					return err
				}
				total += cents
			}
			if total != 200 {
				return fmt.Errorf("there are %d cents, want 200", total)
			}
			return nil
		})
	})
	// Output: no money is made or lost: there are 230 cents, want 200
}

package object_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// patience is how long a caller of these tests waits, in the time of a bubble, for a call that should end
// at once: a call that hangs fails the test and does not stop it.
const patience = time.Minute

// calls is an action that calls another object, which runs then.
func (f *fixture) calls(name string, then action, opts ...object.CallOption) action {
	return func(th *thing, ctx context.Context) (any, error) { return f.do.Call(ctx, th.st, name, then, opts...) }
}

// released is an action that is done while the turn is lent out.
func released(do action) action {
	return func(th *thing, ctx context.Context) (v any, err error) {
		return v, errors.Join(th.st.Release(ctx, func(ctx context.Context) error { v, err = do(th, ctx); return nil }), err)
	}
}

// awaited is an action that a goroutine of the handler does while the handler is in
// Await.
func awaited(do action) action {
	return func(th *thing, ctx context.Context) (v any, err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			v, err = do(th, ctx)
		}()
		return v, errors.Join(th.st.Await(ctx, done), err)
	}
}

// held is an action after which nothing is lent out.
func held(do action) action { return do }

// within is a call that waits no longer than patience.
func (f *fixture) within(name string, fn action, opts ...object.CallOption) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := f.do.Call(ctx, f.host, name, fn, opts...)
	return err
}

// end shuts the host down, and cancels turns that run for longer than patience.
func (f *fixture) end() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := f.host.Shutdown(ctx); err != nil {
		f.t.Error(err)
	}
}

// Case OB1: a call that would close a circle fails at once, however the turns in
// it wait: b calls a, which called it, while b is lent out. Proves O8.
func TestCirclesThroughLentTurns(t *testing.T) {
	key := object.Idempotent("k", time.Hour)
	for name, lends := range map[string]func(action) action{"held": held, "Release": released, "Await": awaited} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t).open()
			defer f.end()
			state := f.must("a", func(th *thing, _ context.Context) (any, error) { return th.st, nil }).(*object.State)
			for circle, fn := range map[string]action{
				"two objects":   f.calls("b", lends(f.calls("a", nothing))),
				"three objects": f.calls("b", lends(f.calls("c", lends(f.calls("a", nothing))))),
				"back to b":     released(f.calls("b", lends(f.calls("c", f.calls("b", f.calls("c", nothing)))))),
				"with a key":    f.calls("b", lends(f.calls("a", nothing, key))),
				"through Do": f.calls("b", lends(func(_ *thing, ctx context.Context) (any, error) {
					return nil, state.Do(ctx, func(context.Context) error { return nil })
				})),
			} {
				if err := f.within("a", fn); !errors.Is(err, object.ErrDeadlock) {
					t.Errorf("O8: %s, %s: %v", name, circle, err)
				}
			}
			f.must("a", f.calls("b", nothing)) // no turn waits any more
			f.must("b", f.calls("a", nothing))
		})
	}
}

// Case OB1: a repeat of a call with an idempotency key waits for the first, so the
// first cannot wait for the repeat. Proves O8, O16.
func TestCircleThroughARepeat(t *testing.T) {
	key := object.Idempotent("k", time.Hour)
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		for name, fn := range map[string]action{
			"its own":     released(f.calls("a", nothing, key)),
			"by another":  released(f.calls("b", f.calls("a", nothing, key))),
			"by one lent": released(f.calls("b", released(f.calls("a", nothing, key)))),
		} {
			if err := f.within("a", fn, key); !errors.Is(err, object.ErrDeadlock) {
				t.Errorf("O8: %s: %v", name, err)
			}
		}
		if err := f.within("a", nothing, key); err != nil {
			t.Errorf("O16: a repeat after it: %v", err)
		}
	})
}

// Case OB1: an alarm's turn has no caller that could give up, so a circle that it closes
// would make its object dead. Proves O8, A6.
func TestCircleThatAnAlarmBegins(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		ended := make(chan error, 1)
		f.handleAlarm(func(th *thing, ctx context.Context, _ object.AlarmInfo) error {
			_, err := f.calls("b", released(f.calls("a", nothing)))(th, ctx)
			ended <- err
			return nil
		})
		f.must("a", setAlarm(time.Second))
		select {
		case err := <-ended:
			if !errors.Is(err, object.ErrDeadlock) {
				t.Errorf("O8: the alarm's call: %v", err)
			}
		case <-time.After(patience):
			t.Error("O8: the alarm's call hangs")
		}
		if err := f.within("a", nothing); err != nil {
			t.Errorf("O8: a call after the alarm: %v", err)
		}
	})
}

// Calls that are close to a circle, but legal, succeed, because no waiting turn waits for
// the caller. Proves O8.
func TestWaysThatAreNoCircle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		for name, fn := range map[string]action{
			"b in Release calls c": f.calls("b", released(f.calls("c", nothing))),
			"back to a lent turn":  released(f.calls("b", f.calls("a", nothing))),
			"all lent":             released(f.calls("b", released(f.calls("a", released(f.calls("b", nothing)))))),
			"itself while lent":    released(f.calls("a", nothing)),
			"one after the other": func(th *thing, ctx context.Context) (any, error) {
				_, err := f.calls("b", released(f.calls("c", nothing)))(th, ctx)
				if err == nil {
					_, err = f.calls("c", released(f.calls("b", nothing)))(th, ctx)
				}
				return nil, err
			},
			"a diamond": func(th *thing, ctx context.Context) (any, error) {
				var wg sync.WaitGroup
				errs := make([]error, 2)
				for i, name := range []string{"b", "c"} {
					wg.Go(func() { _, errs[i] = f.calls(name, released(f.calls("d", nothing)))(th, ctx) })
				}
				wg.Wait()
				return nil, errors.Join(errs...)
			},
		} {
			if err := f.within("a", fn); err != nil {
				t.Errorf("O8: %s: %v", name, err)
			}
		}
		if n := object.Waits(f.host); n != 0 {
			t.Errorf("O8: %d turns are among the waits after all calls have ended", n)
		}
	})
}

// A turn that is lent out needs its object back before it ends. So another turn that
// holds the object cannot wait for a turn that waits for the first. Proves O8.
func TestALentTurnNeedsItsObjectBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		lent, back := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			err := f.within("b", f.calls("a", func(th *thing, ctx context.Context) (any, error) {
				return nil, th.st.Release(ctx, func(context.Context) error {
					close(lent)
					<-back
					return nil
				})
			}))
			if err != nil {
				t.Error(err)
			}
		})
		<-lent
		if err := f.within("a", f.calls("c", nothing)); err != nil {
			t.Errorf("O8: a call elsewhere: %v", err)
		}
		err := f.within("a", func(th *thing, ctx context.Context) (any, error) {
			close(back)
			return f.calls("b", nothing)(th, ctx)
		})
		if !errors.Is(err, object.ErrDeadlock) {
			t.Errorf("O8: a holds the object that the turn needs for which b waits, and calls b: %v", err)
		}
		wg.Wait()
	})
}

// Two chains meet: each lends its own turn out and calls the object of the other chain.
// That object's turn needs its object back only after its own call, so both chains end.
func TestChainsThatMeet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		meet := make(chan struct{})
		var wg sync.WaitGroup
		for _, pair := range [][2]string{{"x", "y"}, {"y", "x"}} {
			wg.Go(func() {
				err := f.within(pair[0], released(func(th *thing, ctx context.Context) (any, error) {
					<-meet
					return f.do.Call(ctx, th.st, pair[1], nothing)
				}))
				if err != nil {
					t.Errorf("O8: %s calls %s: %v", pair[0], pair[1], err)
				}
			})
		}
		pass(0)
		close(meet)
		wg.Wait()
	})
}

// A deadlock says which objects wait for one another.
func TestDeadlockNamesTheCircle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		key := object.Idempotent("k", time.Hour)
		for _, c := range []struct {
			fn   action
			want string
		}{
			{f.calls("a", nothing), "thing/a: deadlock: it called itself"},
			{f.calls("b", released(f.calls("a", nothing))), "thing/b: deadlock: it called thing/a, which is waiting for thing/b"},
			{f.calls("b", f.calls("c", f.calls("a", nothing))),
				"thing/c: deadlock: it called thing/a, which is waiting for thing/b, which is waiting for thing/c"},
			{released(f.calls("b", f.calls("a", nothing, key))),
				"thing/a: deadlock: it repeats the call under its idempotency key, which is waiting for thing/b, which is waiting for thing/a"},
		} {
			if err := f.within("a", c.fn, key); err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("O8: got %v\nwant %s", err, c.want)
			}
		}
	})
}

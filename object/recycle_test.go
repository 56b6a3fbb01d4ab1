package object_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// The memory of a call is used again. A context that was kept beyond its turn is
// refused all the same, also in the middle of the turn that has its memory now.
//
// Proves S1, S2.
func TestKeptContextNeverActsInALaterTurn(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.must("a", nothing) // the constructor's turn is another matter: its context has an end
	var kept context.Context
	f.must("a", func(_ *thing, ctx context.Context) (any, error) { kept = ctx; return nil, nil })
	for range 100 {
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			if err := th.st.Storage().PutBytes(kept, "k", nil); !errors.Is(err, object.ErrNoTurn) {
				t.Errorf("writing with a kept context: %v", err)
			}
			if err := th.st.Release(kept, func(context.Context) error { return nil }); !errors.Is(err, object.ErrNoTurn) {
				t.Errorf("lending out with a kept context: %v", err)
			}
			return nil, th.st.Storage().PutBytes(ctx, "own", nil)
		})
		// The call has no turn, so it counts as one from outside, and closes no circle.
		if _, err := f.do.Call(kept, f.host, "a", nothing); err != nil {
			t.Errorf("calling with a kept context: %v", err)
		}
	}
	if kept.Err() != nil {
		t.Errorf("its caller's context has not ended: %v", kept.Err())
	}
	if in, _ := f.host.Inspect(context.Background(), f.id("a")); len(in.Keys) != 1 {
		t.Errorf("stored: %v", in.Keys)
	}
}

// Done of a turn is closed when the turn ends, and stays so while others run in
// its memory.
func TestDoneOfATurnThatHasEnded(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	var kept context.Context
	f.must("a", func(_ *thing, ctx context.Context) (any, error) {
		kept = ctx
		select {
		case <-ctx.Done():
			t.Error("Done is closed while the turn runs")
		default:
		}
		return nil, nil
	})
	for range 10 {
		f.must("a", func(_ *thing, ctx context.Context) (any, error) {
			<-kept.Done()
			if !errors.Is(kept.Err(), context.Canceled) || ctx.Err() != nil {
				t.Errorf("the ended turn's: %v, the present one's: %v", kept.Err(), ctx.Err())
			}
			return nil, nil
		})
	}
}

// Calls that their callers have left, while they waited and while they ran, share
// no memory with later calls.
//
// Proves O11, O12.
func TestLeftCallsShareNoMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		gate := make(chan struct{})
		running := func(_ *thing, ctx context.Context) (any, error) { <-gate; return "left", nil }
		leave := func(fn action, want error) {
			t.Helper()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if _, err := f.do.Call(ctx, f.host, "busy", fn); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		// A caller runs the first call of an idle object itself and cannot leave it. So
		// the call to leave comes second.
		first := make(chan struct{})
		go f.call("busy", func(*thing, context.Context) (any, error) { <-first; return nil, nil })
		synctest.Wait()
		time.AfterFunc(time.Millisecond, func() { close(first) })
		leave(running, object.ErrUnknown)
		leave(func(*thing, context.Context) (any, error) { t.Error("a call that was left ran"); return nil, nil }, context.DeadlineExceeded)
		others := func() {
			for i := range 100 {
				want := fmt.Sprint(i)
				if got := f.must("other", func(*thing, context.Context) (any, error) { return want, nil }); got != want {
					t.Errorf("call %s was answered %v", want, got)
				}
			}
		}
		others()
		close(gate)
		others()
		f.must("busy", nothing)
	})
}

// repeater is a Caller that passes each request on twice.
type repeater struct{ host *object.Host }

func (c repeater) Invoke(ctx context.Context, r *object.Request) error {
	if err := c.host.Invoke(ctx, r); err != nil {
		return err
	}
	return c.host.Invoke(ctx, r)
}

// A request that a Caller passes on twice is refused.
func TestRequestIsPassedOnOnce(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	ran := 0
	_, err := f.do.Call(context.Background(), repeater{f.host}, "a", func(*thing, context.Context) (any, error) { ran++; return nil, nil })
	if err == nil || ran != 1 {
		t.Errorf("the handler ran %d times: %v", ran, err)
	}
}

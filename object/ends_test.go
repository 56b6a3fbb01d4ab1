package object_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves O4: what the runtime itself wants of an object whose constructor fails goes on
// with the next activation; a call that waits is refused.
func TestRuntimesOwnAfterAFailedConstructor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		cause, fails := errors.New("boom"), true
		f.handleConstruct(func(context.Context, *thing) error {
			time.Sleep(time.Second)
			if fails {
				fails = false
				return cause
			}
			return nil
		})
		f.open()
		defer f.close()
		var first, second, own error
		var wg sync.WaitGroup
		wg.Go(func() { _, first = f.call("a", nothing) })
		synctest.Wait()
		wg.Go(func() { own = f.host.DiscardDeadLetter(context.Background(), f.id("a"), 1) })
		synctest.Wait()
		wg.Go(func() { _, second = f.call("a", nothing) })
		wg.Wait()
		for _, err := range []error{first, second} {
			if !errors.Is(err, object.ErrConstructor) || !errors.Is(err, cause) {
				t.Errorf("O4: a call: %v", err)
			}
		}
		if !errors.Is(own, object.ErrNoDeadLetter) {
			t.Errorf("O4: the runtime's own: %v", own)
		}
	})
}

// Proves O10: an object leaves memory after a turn that outlasted all sweeps.
func TestIdleAfterALongTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{IdleAfter: time.Minute}).open()
		defer f.close()
		f.must("a", func(*thing, context.Context) (any, error) { time.Sleep(time.Hour); return nil, nil })
		pass(2 * time.Minute)
		if in, err := f.host.Inspect(context.Background(), f.id("a")); err != nil || in.Live {
			t.Errorf("O10: in memory: %v, %v", in.Live, err)
		}
	})
}

// Proves O8, O15: a handler whose object is deleted while it has lent its turn out gets
// ErrReset, and the next call finds a fresh object.
func TestDeletedWhileLentOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		f.must("a", put("k", "v"))
		_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
			err := th.st.Release(ctx, func(context.Context) error {
				return f.host.Delete(context.Background(), f.id("a"))
			})
			if !errors.Is(err, object.ErrReset) {
				t.Errorf("O8: Release says %v", err)
			}
			return nil, th.st.Storage().PutBytes(ctx, "late", nil)
		})
		if !errors.Is(err, object.ErrReset) {
			t.Errorf("O15: the turn that was fenced says %v", err)
		}
		if in, err := f.host.Inspect(context.Background(), f.id("a")); err != nil || in.Exists {
			t.Errorf("O15: %+v, %v", in, err)
		}
	})
}

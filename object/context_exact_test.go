package object_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves O9: an activation makes several contexts, and some are released, in any order.
// The others end with the activation.
func TestContextsEndWithTheActivation(t *testing.T) {
	const n = 4
	for released := range 1 << n {
		for _, backward := range []bool{false, true} {
			f := newFixture(t).open()
			var all [n]context.Context
			f.must("a", func(th *thing, _ context.Context) (any, error) {
				var release [n]func()
				for i := range n {
					all[i], release[i] = th.st.Driver().Context()
				}
				for i := range n {
					if backward {
						i = n - 1 - i
					}
					if released>>i&1 == 1 {
						release[i]()
						release[i]() // a second release does nothing
					}
				}
				return nil, nil
			})
			for i, ctx := range all {
				if got := ctx.Err() != nil; got != (released>>i&1 == 1) {
					t.Errorf("O9: of %04b context %d has ended: %v", released, i, got)
				}
			}
			_, _ = f.call("a", func(*thing, context.Context) (any, error) { panic("reset") })
			for i, ctx := range all {
				if got := errors.Is(context.Cause(ctx), object.ErrReset); ctx.Err() == nil || got == (released>>i&1 == 1) {
					t.Errorf("O9: of %04b context %d ended with %v", released, i, context.Cause(ctx))
				}
			}
			f.close()
		}
	}
}

// Proves O9: the context of a work ends with the work, whether Done was called before the
// end or is called after it.
func TestContextOfAWorkThatReturns(t *testing.T) {
	for _, asked := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t).open()
			defer f.close()
			var kept, child context.Context
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				return nil, th.st.Go(ctx, "w", func(ctx context.Context) {
					kept = ctx
					if asked {
						inner, cancel := context.WithCancel(ctx)
						child = inner
						t.Cleanup(cancel)
						select {
						case <-ctx.Done():
							t.Error("O9: it has ended while the work runs")
						case <-time.After(time.Second):
						}
					}
				})
			})
			pass(time.Minute)
			select {
			case <-kept.Done():
			default:
				t.Errorf("O9: asked for before %v: it goes on after the work", asked)
			}
			if !errors.Is(kept.Err(), context.Canceled) || child != nil && child.Err() == nil {
				t.Errorf("O9: it ended with %v, its child with %v", kept.Err(), child)
			}
			if at, ok := kept.Deadline(); ok {
				t.Errorf("O9: it has the deadline %v", at)
			}
		})
	}
}

// Turns that have called Done of their context leave nothing in memory, however many of
// them one activation has run.
func TestContextsLeaveNoMemory(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	turn := func(_ *thing, ctx context.Context) (any, error) { ctx.Done(); return nil, nil }
	f.must("a", turn)
	before := heap()
	const turns = 30_000
	for range turns {
		f.must("a", turn)
	}
	if grown := heap() - before; grown > 50*turns {
		t.Errorf("%d turns leave %d bytes", turns, grown)
	}
	f.must("a", func(th *thing, _ context.Context) (any, error) {
		before := heap()
		last := func() {}
		for range turns { // each goes when the next is there
			_, release := th.st.Driver().Context()
			last()
			last = release
		}
		if grown := heap() - before; grown > 50*turns {
			t.Errorf("%d contexts leave %d bytes", turns, grown)
		}
		last()
		return nil, nil
	})
}

// Proves O14: an Await that has ended holds no place, so that a later shutdown cancels
// only those that wait, each once.
func TestAwaitsThatHaveEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		var ends []chan struct{}
		results := make([]error, 5)
		for i := range results {
			end := make(chan struct{})
			ends = append(ends, end)
			go func() {
				_, results[i] = f.call(string(rune('a'+i)), func(th *thing, ctx context.Context) (any, error) {
					return nil, th.st.Await(ctx, end)
				})
			}()
			synctest.Wait()
		}
		for _, i := range []int{0, 3, 4} { // the first, one in the midst, the last
			close(ends[i])
			synctest.Wait()
		}
		f.close()
		synctest.Wait()
		for i, err := range results {
			if waits := i == 1 || i == 2; waits != errors.Is(err, object.ErrShutdown) || !waits && err != nil {
				t.Errorf("O14: Await %d ended with %v", i, err)
			}
		}
	})
}

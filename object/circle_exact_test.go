package object_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves O8: for a long circle the text of a deadlock names only eight objects, the first
// ones on the way of the call.
func TestLongCircleIsCut(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	for _, n := range []int{8, 9, 12} {
		fn := f.calls("0", nothing)
		for i := n - 1; i > 0; i-- {
			fn = f.calls(fmt.Sprint(i), fn)
		}
		_, err := f.call("0", fn)
		if !errors.Is(err, object.ErrDeadlock) {
			t.Fatal(err)
		}
		if named := strings.Count(err.Error(), "waiting for"); named != min(n-1, 8) {
			t.Errorf("O8: a circle of %d names %d others: %v", n, named, err)
		}
	}
}

// Proves O8: a turn is lost when its object is deleted while the turn is lent out. From
// then on it does not count as waiting for its object, so a call of the object's next
// turn closes no circle through it.
func TestLostTurnWaitsForNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		lost, back := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := f.call("c", func(th *thing, ctx context.Context) (any, error) {
				return f.do.Call(ctx, th.st, "a", func(th *thing, ctx context.Context) (any, error) {
					err := th.st.Release(ctx, func(context.Context) error { <-lost; return nil })
					<-back
					return nil, err
				})
			})
			if !errors.Is(err, object.ErrReset) {
				t.Errorf("O8: the call of the lost turn: %v", err)
			}
		})
		synctest.Wait()
		if err := f.host.Delete(context.Background(), f.id("a")); err != nil {
			t.Error(err)
		}
		close(lost)
		synctest.Wait()
		wg.Go(func() {
			if _, err := f.call("a", f.calls("c", nothing)); err != nil {
				t.Errorf("O8: a call of the next turn: %v", err)
			}
		})
		synctest.Wait()
		close(back)
		wg.Wait()
	})
}

// Proves O8: a turn makes a call while it is lent out, and has its object back before the
// call ends. The call cannot call that object, because this would close a circle.
func TestCircleThroughATurnThatIsBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		gate := make(chan struct{})
		var wg sync.WaitGroup
		var got error
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			err := th.st.Release(ctx, func(ctx context.Context) error {
				wg.Go(func() {
					_, got = f.do.Call(ctx, th.st, "c", func(th *thing, ctx context.Context) (any, error) {
						<-gate
						return f.do.Call(ctx, th.st, "a", nothing)
					})
				})
				time.Sleep(time.Second)
				return nil
			})
			close(gate)
			wg.Wait()
			return nil, err
		})
		if !errors.Is(got, object.ErrDeadlock) {
			t.Errorf("O8: the call says %v", got)
		}
	})
}

// Proves O8: a handler makes two calls at a time. Each of them counts as a wait until it
// has ended, in any order.
func TestCircleThroughTheCallThatIsLeft(t *testing.T) {
	for _, first := range []string{"b", "c"} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t).open()
			defer f.end()
			gates := map[string]chan struct{}{"b": make(chan struct{}), "c": make(chan struct{})}
			errs := map[string]error{}
			go func() {
				time.Sleep(time.Second)
				close(gates[first])
				time.Sleep(time.Second)
				for name, gate := range gates {
					if name != first {
						close(gate)
					}
				}
			}()
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				var wg sync.WaitGroup
				var mu sync.Mutex
				for _, name := range []string{"b", "c"} {
					wg.Go(func() {
						_, err := f.do.Call(ctx, th.st, name, func(th *thing, ctx context.Context) (any, error) {
							if <-gates[name]; name == first {
								return nil, nil
							}
							return f.do.Call(ctx, th.st, "a", nothing)
						})
						mu.Lock()
						defer mu.Unlock()
						errs[name] = err
					})
					time.Sleep(time.Millisecond)
				}
				wg.Wait()
				return nil, nil
			})
			for name, err := range errs {
				if name == first && err != nil || name != first && !errors.Is(err, object.ErrDeadlock) {
					t.Errorf("O8: %s ended first: the call of %s: %v", first, name, err)
				}
			}
			if n := object.Waits(f.host); n != 0 {
				t.Errorf("O8: %d turns wait when all have ended", n)
			}
		})
	}
}

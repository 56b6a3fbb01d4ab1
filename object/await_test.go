package object_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves O8.
func TestAwaitLendsTheTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		told := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			got := f.must("a", func(th *thing, ctx context.Context) (any, error) {
				if err := th.st.Storage().PutBytes(ctx, "k", []byte("before")); err != nil {
					return nil, err
				}
				if err := th.st.Await(ctx, told); err != nil {
					return nil, err
				}
				return get("k")(th, ctx)
			})
			if got != "between" {
				t.Errorf("O8: after the wait k is %q", got)
			}
		})
		time.Sleep(time.Hour) // a turn that is lent out holds off eviction
		if f.stored("a", "k") != "before" {
			t.Error("O8: Await did not commit first")
		}
		f.must("a", put("k", "between"))
		close(told)
		wg.Wait()
	})
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			why := errors.New("enough")
			short, cancel := context.WithCancelCause(ctx)
			cancel(why)
			if err := th.st.Await(short, make(chan struct{})); !errors.Is(err, why) {
				t.Errorf("Await: %v", err)
			}
			return nil, nil
		})
	})
}

// Shutdown ends each Await in a turn, also of a turn that calls Await after Shutdown has
// begun. The turns go on. Proves O14.
func TestShutdownEndsAwait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		never, gate := make(chan struct{}), make(chan struct{})
		wait := func(th *thing, ctx context.Context) (any, error) {
			if th.st.ID().Name == "late" {
				<-gate
			}
			err := th.st.Await(ctx, never)
			if name := th.st.ID().String(); !errors.Is(err, object.ErrShutdown) || !strings.Contains(err.Error(), name) {
				t.Errorf("O14: Await of %s: %v", name, err)
			}
			return nil, th.st.Storage().PutBytes(ctx, "k", []byte("after"))
		}
		names := []string{"a", "b", "c", "late"}
		var wg sync.WaitGroup
		for _, name := range names {
			wg.Go(func() {
				if _, err := f.call(name, wait); err != nil {
					t.Errorf("O14: %s: %v", name, err)
				}
			})
		}
		told := make(chan struct{})
		wg.Go(func() { // one leaves before the end
			f.must("told", func(th *thing, ctx context.Context) (any, error) {
				return nil, th.st.Await(ctx, told)
			})
		})
		synctest.Wait()
		close(told)
		synctest.Wait()
		began := time.Now()
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := f.host.Shutdown(ctx); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
		})
		synctest.Wait()
		close(gate)
		wg.Wait()
		if took := time.Since(began); took > time.Second {
			t.Errorf("O14: Shutdown took %v", took)
		}
		f.mem = f.mem.Crash(0)
		f.open()
		for _, name := range names {
			if got := f.must(name, get("k")); got != "after" {
				t.Errorf("O14: the turn of %s that waited stored %q", name, got)
			}
		}
		f.close()
	})
}

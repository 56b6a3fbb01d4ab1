package object_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// outlives runs do on a goroutine of a handler, and lets the handler return while do is
// under way. It returns the errors of do and of the call.
func (f *fixture) outlives(name string, do func(th *thing, ctx context.Context, inside chan struct{}) error) (did, called error) {
	inside, done := make(chan struct{}), make(chan error, 1)
	_, called = f.call(name, func(th *thing, ctx context.Context) (any, error) {
		go func() { done <- do(th, ctx, inside) }()
		<-inside // do is under way, and stays
		return nil, nil
	})
	inside <- struct{}{}
	return <-done, called
}

// stay tells that it is reached, and waits until the turn has ended.
func stay(inside chan struct{}) {
	inside <- struct{}{}
	<-inside
}

// Case OB5: a goroutine that is inside a method of the State when its turn ends gets
// an error: the process lives, and so does the object. Proves O6, O9.
func TestGoroutinesThatOutliveTheirTurn(t *testing.T) {
	errOwn := errors.New("own")
	for name, c := range map[string]struct {
		do    func(th *thing, ctx context.Context, inside chan struct{}) error
		fails bool // the turn, which would commit a part or lacks its object
	}{
		"block": {func(th *thing, ctx context.Context, inside chan struct{}) error {
			return th.st.BlockConcurrencyWhile(ctx, func(context.Context) error { stay(inside); return nil })
		}, false},
		"block that fails": {func(th *thing, ctx context.Context, inside chan struct{}) error {
			return th.st.BlockConcurrencyWhile(ctx, func(context.Context) error { stay(inside); return errOwn })
		}, false},
		"block that panics": {func(th *thing, ctx context.Context, inside chan struct{}) error {
			return th.st.BlockConcurrencyWhile(ctx, func(context.Context) error { stay(inside); panic("own") })
		}, false},
		"transaction": {func(th *thing, ctx context.Context, inside chan struct{}) error {
			return th.st.Storage().Transaction(ctx, func(context.Context, *object.Storage) error { stay(inside); return nil })
		}, true},
		"transaction that fails": {func(th *thing, ctx context.Context, inside chan struct{}) error {
			return th.st.Storage().Transaction(ctx, func(context.Context, *object.Storage) error { stay(inside); return errOwn })
		}, true},
		"release": {func(th *thing, ctx context.Context, inside chan struct{}) error {
			return th.st.Release(ctx, func(context.Context) error { stay(inside); return nil })
		}, true},
		"later": {func(th *thing, ctx context.Context, inside chan struct{}) error {
			stay(inside)
			return th.st.Storage().PutBytes(ctx, "k", []byte("late"))
		}, false},
	} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t).open()
			defer f.end()
			f.must("a", put("k", "v"))
			did, called := f.outlives("a", c.do)
			if !errors.Is(did, object.ErrNoTurn) && !errors.Is(did, object.ErrReset) {
				t.Errorf("O9: %s: the goroutine got %v, want ErrNoTurn", name, did)
			}
			if c.fails != errors.Is(called, object.ErrNoTurn) {
				t.Errorf("O9: %s: the call got %v", name, called)
			}
			pass(time.Hour) // beyond the limit of a block
			if err := f.within("a", put("k", "w")); err != nil {
				t.Errorf("O9: %s: a call after it: %v", name, err)
			}
		})
	}
}

// A goroutine that is still in Release when another turn has the object waits for its
// place, and gives the object on. Proves O8.
func TestReleaseThatOutlivesItsTurnGivesTheObjectOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		gate := make(chan struct{})
		var wg sync.WaitGroup
		_, err := f.outlives("a", func(th *thing, ctx context.Context, inside chan struct{}) error {
			return th.st.Release(ctx, func(context.Context) error {
				stay(inside)
				wg.Go(func() { f.must("a", func(*thing, context.Context) (any, error) { <-gate; return nil, nil }) })
				pass(0)
				go func() { pass(time.Second); close(gate) }()
				return nil
			})
		})
		if !errors.Is(err, object.ErrNoTurn) {
			t.Errorf("O8: a handler that leaves its turn lent out: %v", err)
		}
		wg.Wait()
		if err := f.within("a", nothing); err != nil {
			t.Errorf("O8: a call after it: %v", err)
		}
	})
}

// Case OB7: a handler that ends its goroutine ends its turn. Its writes are dropped, and
// the calls that wait for the object are served. Its own caller gets an answer too,
// unless the turn ran on the caller's goroutine. Proves O6.
func TestGoexitServesTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		exit := func(th *thing, ctx context.Context) (any, error) {
			_ = th.st.Storage().PutBytes(ctx, "k", []byte("v"))
			_ = th.st.Driver().Seams().Sleep(ctx, time.Second)
			runtime.Goexit()
			return nil, nil
		}
		f.must("a", nothing)
		synctest.Wait() // for the goroutine of its first turn, which answers before it ends
		var wg sync.WaitGroup
		own := make(chan bool, 1)
		wg.Go(func() { // the object is idle, so the turn runs here
			returned := false
			defer func() { own <- returned }()
			_ = f.within("a", exit)
			returned = true
		})
		pass(0)
		for range 3 { // these wait, so their turns run elsewhere
			wg.Go(func() {
				if err := f.within("a", exit); !errors.Is(err, object.ErrPanic) {
					t.Errorf("O6: the caller of a handler that ended its goroutine got %v, want ErrPanic", err)
				}
			})
		}
		wg.Go(func() {
			if err := f.within("fresh", exit); !errors.Is(err, object.ErrPanic) {
				t.Errorf("O6: the first caller of an object got %v, want ErrPanic", err)
			}
		})
		wg.Wait()
		if <-own {
			t.Error("O6: the caller whose goroutine the handler ended went on")
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if got, err := f.do.Call(ctx, f.host, "a", get("k")); err != nil || got != "" {
			t.Errorf("O6: the turns left %q: %v", got, err)
		}
	})
}

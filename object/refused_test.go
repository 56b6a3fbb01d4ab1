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

// Case OB3: calls that wait behind a failing block are refused with the cause. Later
// calls find the object constructed again. Proves O4.
func TestCallsBehindABlockThatFails(t *testing.T) {
	cause := errors.New("broken")
	for name, end := range map[string]func() error{
		"error": func() error { return cause },
		"panic": func() error { panic(cause) },
	} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t).open()
			defer f.end()
			gate := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				err := f.within("a", func(th *thing, ctx context.Context) (any, error) {
					_ = th.st.BlockConcurrencyWhile(ctx, func(context.Context) error { <-gate; return end() })
					return nil, nil
				})
				if !errors.Is(err, object.ErrReset) {
					t.Errorf("O4: %s: the turn of the block: %v", name, err)
				}
			})
			pass(0)
			for range 3 {
				wg.Go(func() {
					err := f.within("a", func(*thing, context.Context) (any, error) {
						t.Errorf("O4: %s: a call that waited runs", name)
						return nil, nil
					})
					if !errors.Is(err, object.ErrConstructor) || !errors.Is(err, cause) || !object.Retryable(err) {
						t.Errorf("O4: %s: a call that waited: %v", name, err)
					}
				})
			}
			pass(0)
			close(gate)
			wg.Wait()
			if err := f.within("a", nothing); err != nil {
				t.Errorf("O4: %s: a call after the block: %v", name, err)
			}
		})
	}
}

// A block that ends well refuses no call, and neither does a handler that fails outside
// of any block.
func TestCallsBehindAHandlerThatFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		gate := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = f.within("a", func(th *thing, ctx context.Context) (any, error) {
				err := th.st.BlockConcurrencyWhile(ctx, func(ctx context.Context) error {
					<-gate
					return th.st.Storage().PutBytes(ctx, "k", nil)
				})
				return nil, errors.Join(err, errors.New("no"))
			})
		})
		pass(0)
		wg.Go(func() { f.must("a", nothing) })
		pass(0)
		close(gate)
		wg.Wait()
	})
}

// Case OB4: Shutdown cuts off a constructor. The calls that wait behind it never run, and
// their error says so. Proves O14.
func TestShutdownBehindASlowConstructor(t *testing.T) {
	for name, longer := range map[string]time.Duration{"that hears": 0, "that outlives the store": time.Second} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t)
			f.handleConstruct(func(ctx context.Context, th *thing) error {
				<-ctx.Done()
				time.Sleep(longer)
				return nil
			})
			f.open()
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					_, err := f.call("a", nothing)
					if i > 0 && (!errors.Is(err, object.ErrShutdown) || errors.Is(err, object.ErrStorage)) {
						t.Errorf("O14: %s: call %d behind the constructor: %v, want ErrShutdown", name, i, err)
					}
				})
				synctest.Wait()
			}
			_ = f.host.Shutdown(ended()) // with longer it names the object
			wg.Wait()
		})
	}
}

// Case OB6: when a context ends a wait, the error of the wait matches both context.Cause
// and ctx.Err. Proves O12.
func TestErrorsMatchCauseAndContext(t *testing.T) {
	cause := errors.New("the client has gone")
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		f.must("busy", nothing)
		gate := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { f.must("busy", func(*thing, context.Context) (any, error) { <-gate; return nil, nil }) })
		pass(0)
		never := make(chan struct{})
		for name, wait := range map[string]func(ctx context.Context) error{
			"a call that waits": func(ctx context.Context) error { _, err := f.do.Call(ctx, f.host, "busy", nothing); return err },
			"a call that runs": func(ctx context.Context) error {
				_, err := f.do.Call(ctx, f.host, "other", func(*thing, context.Context) (any, error) { time.Sleep(time.Hour); return nil, nil })
				return err
			},
			"a call that begins late": func(ctx context.Context) error {
				<-ctx.Done()
				_, err := f.do.Call(ctx, f.host, "late", nothing)
				return err
			},
			"Await": func(ctx context.Context) error {
				_, err := f.call("await", func(th *thing, own context.Context) (any, error) {
					own, cancel := context.WithTimeoutCause(own, time.Second, cause)
					defer cancel()
					return nil, th.st.Await(own, never)
				})
				return err
			},
			"Sleep":   func(ctx context.Context) error { return f.host.Seams().Sleep(ctx, time.Hour) },
			"Inspect": func(ctx context.Context) error { <-ctx.Done(); _, err := f.host.Inspect(ctx, f.id("busy")); return err },
			"Watch": func(ctx context.Context) error {
				for _, err := range f.host.Watch(ctx, f.id("busy"), 0) {
					return err
				}
				return nil
			},
		} {
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, cause)
			if err := wait(ctx); !errors.Is(err, cause) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("O12: %s: %v matches the cause: %v, the deadline: %v", name, err, errors.Is(err, cause), errors.Is(err, context.DeadlineExceeded))
			}
			cancel()
		}
		close(gate)
		wg.Wait()
		pass(time.Hour)
	})
}

// Case OB8: a watch leaves nothing behind, however it ends, also of objects that do
// not exist. Proves O1.
func TestWatchLeavesNothingBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		emit := func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Emit(ctx, "kind", 1) }
		f.must("told", emit)
		var wg sync.WaitGroup
		for _, name := range []string{"told", "never", "never", "another"} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			wg.Go(func() {
				defer cancel()
				for _, err := range f.host.Watch(ctx, f.id(name), 0) {
					if name == "told" || err != nil {
						return
					}
				}
			})
		}
		pass(0)
		if n := object.Watched(f.host); n != 2 {
			t.Errorf("O1: %d objects are watched, want 2", n)
		}
		wg.Wait()
		if n := object.Watched(f.host); n != 0 {
			t.Errorf("O1: %d objects are kept in memory after the last watch of them", n)
		}
		// One watcher that leaves takes no news from another.
		got := make(chan object.Event, 1)
		wg.Go(func() {
			for e := range f.host.Watch(context.Background(), f.id("both"), 0) {
				got <- e
				return
			}
		})
		short, cancel := context.WithCancel(context.Background())
		wg.Go(func() {
			for range f.host.Watch(short, f.id("both"), 0) {
				return
			}
		})
		pass(0)
		cancel()
		pass(0)
		f.must("both", emit)
		if e := <-got; e.Kind != "kind" {
			t.Errorf("O1: the other watcher got %+v", e)
		}
		wg.Wait()
	})
}

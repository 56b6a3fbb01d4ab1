package object_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// leaves is a call with a caller that leaves after a second, and says when it has returned.
func (f *fixture) leaves(name string, fn action, opts ...object.CallOption) (after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), leaver{}, "anna"), time.Second)
	defer cancel()
	began := time.Now()
	_, err = f.do.Call(ctx, f.host, name, fn, opts...)
	return time.Since(began), err
}

// leaver is the key of a value in the context of leaves.
type leaver struct{}

// Proves O20: a caller with Detached leaves when its context ends, and the handler goes on with
// a context that has the caller's values and does not end. Without it, the caller of an idle
// object stays.
func TestDetachedCallerLeaves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		var ended, value, timed any
		slow := func(th *thing, ctx context.Context) (any, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			ended, value = ctx.Err(), ctx.Value(leaver{})
			_, timed = ctx.Deadline()
			return nil, th.st.Storage().PutBytes(context.WithoutCancel(ctx), "k", []byte("v"))
		}
		for _, name := range []string{"in memory", "new"} {
			if name == "in memory" {
				f.must(name, nothing)
			}
			after, err := f.leaves(name, slow, object.Detached())
			if !errors.Is(err, object.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) || object.Retryable(err) || after != time.Second {
				t.Errorf("O20: %s: the caller left after %v with %v", name, after, err)
			}
			if got := f.must(name, get("k")); got != "v" || ended != nil || value != "anna" || timed != false {
				t.Errorf("O20: %s: the handler wrote %q, its context ended with %v, has the value %v and a deadline: %v", name, got, ended, value, timed)
			}
		}
		stays := func(*thing, context.Context) (any, error) { time.Sleep(time.Minute); return nil, nil }
		if after, err := f.leaves("in memory", stays); err != nil || after != time.Minute {
			t.Errorf("O20: without Detached the caller returned after %v with %v", after, err)
		}
	})
}

// Proves O20: one that still waits for its turn when its context ends never runs, and one that ends
// in time has its answer.
func TestDetachedCallInTheMailbox(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		gate := make(chan struct{})
		go f.call("a", until(gate))
		pass(0)
		ran := false
		after, err := f.leaves("a", func(*thing, context.Context) (any, error) { ran = true; return nil, nil }, object.Detached())
		if after != time.Second || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, object.ErrUnknown) {
			t.Errorf("O20: the caller left after %v with %v", after, err)
		}
		close(gate)
		pass(time.Minute)
		if ran {
			t.Error("O20: a call ran that its caller had left before its turn")
		}
		v, err := f.do.Call(context.Background(), f.host, "a", func(*thing, context.Context) (any, error) { return 7, nil }, object.Detached())
		if v != 7 || err != nil {
			t.Errorf("O20: a call that ends in time: %v, %v", v, err)
		}
	})
}

// Proves O20: the context of a handler that its caller has left ends with the instance, and with
// the context of Shutdown, which waits for the handler until then.
func TestDetachedHandlerEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		var why atomic.Value
		stuck := func(_ *thing, ctx context.Context) (any, error) {
			<-ctx.Done()
			why.Store(context.Cause(ctx))
			return nil, ctx.Err()
		}
		if _, err := f.leaves("a", stuck, object.Detached()); !errors.Is(err, object.ErrUnknown) {
			t.Error(err)
		}
		if err := f.host.Delete(context.Background(), f.id("a")); err != nil {
			t.Fatal(err)
		}
		pass(0)
		if err, _ := why.Load().(error); !errors.Is(err, object.ErrReset) {
			t.Errorf("O20: after the deletion the handler's context ended with %v", err)
		}
		if _, err := f.leaves("b", stuck, object.Detached()); !errors.Is(err, object.ErrUnknown) {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		began := time.Now()
		if err := f.host.Shutdown(ctx); err != nil || time.Since(began) != time.Minute {
			t.Errorf("O20: Shutdown took %v and returned %v", time.Since(began), err)
		}
		if err, _ := why.Load().(error); !errors.Is(err, object.ErrShutdown) {
			t.Errorf("O20: at the end of Shutdown's context the handler's ended with %v", err)
		}
	})
}

// Proves O20, O8: in a call from a turn Detached has no effect: a circle is refused at once,
// however the turns in it wait, and the called handler's context ends with the caller's.
func TestDetachedInATurn(t *testing.T) {
	for name, lends := range map[string]func(action) action{"held": held, "Release": released, "Await": awaited} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t).open()
			defer f.end()
			d := object.Detached()
			fn := f.calls("b", lends(f.calls("a", nothing, d)), d)
			if err := f.within("a", fn, d); !errors.Is(err, object.ErrDeadlock) {
				t.Errorf("O8: %s: a circle of detached calls: %v", name, err)
			}
			if n := object.Waits(f.host); n != 0 {
				t.Errorf("O8: %s: %d turns wait after the circle", name, n)
			}
			ended := make(chan error, 1)
			_, _ = f.leaves("a", f.calls("b", func(_ *thing, ctx context.Context) (any, error) {
				select {
				case <-ctx.Done():
				case <-time.After(patience):
				}
				ended <- context.Cause(ctx)
				return nil, nil
			}, d))
			if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("O20: %s: the called handler's context ended with %v", name, err)
			}
		})
	}
}

// Proves O20, O6: a handler that ends its goroutine does not end that of a detached caller.
func TestDetachedGoexit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		f.must("a", nothing)
		if _, err := f.call("a", func(*thing, context.Context) (any, error) { runtime.Goexit(); return nil, nil }, object.Detached()); !errors.Is(err, object.ErrPanic) {
			t.Errorf("O6: %v", err)
		}
	})
}

// patient is an object with a handler that takes longer than its caller waits.
type patient struct {
	st *object.State
	n  int
}

var (
	patients = object.Define("patient", func(ctx context.Context, st *object.State) (*patient, error) {
		p := &patient{st: st}
		_, err := st.Storage().GetInto(ctx, "n", &p.n)
		return p, err
	})
	treat = object.Handle(patients, "treat", func(p *patient, ctx context.Context, _ struct{}) (int, error) {
		if err := p.st.Driver().Seams().Sleep(ctx, 3*time.Second); err != nil {
			return 0, err
		}
		p.n++
		return p.n, p.st.Storage().Put(ctx, "n", p.n)
	})
)

// Proves O20, O16: callers that leave before the answer, and come again with the same key, get
// the answer of the one run in the end, through crashes.
func TestCrashDetached(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		s.Host(patients)
		errLeft := errors.New("left")
		left, got := 0, 0
		for tries := 0; got == 0 && tries < 100; tries++ {
			err := s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
				ctx, cancel := h.Seams().WithDeadline(ctx, h.Seams().Clock.Now().Add(time.Second), errLeft)
				defer cancel()
				got, err = treat.Call(ctx, h, "a", struct{}{}, object.Idempotent("k", time.Hour), object.Detached())
				if errors.Is(err, object.ErrUnknown) && errors.Is(err, errLeft) {
					left++
				}
				if errors.Is(err, errLeft) {
					return nil
				}
				return err
			})
			s.OK(err)
			s.Sleep(500 * time.Millisecond)
		}
		s.Always("the caller left before the answer came", left > 0, left)
		s.Finally("one run counts", func() error {
			n, err := treat.Call(s.Context(), s, "a", struct{}{}, object.Idempotent("k", time.Hour))
			if err != nil || n != 1 || got != 1 {
				return fmt.Errorf("the answers are %d and %d, %v", got, n, err)
			}
			return nil
		})
	})
}

// Proves O20: the caller of Wake leaves when its context ends, and the constructor goes on.
func TestWakeCallerLeaves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ended error
		class := object.Define("slow", func(ctx context.Context, st *object.State) (*thing, error) {
			time.Sleep(10 * time.Second)
			ended = ctx.Err()
			return &thing{st: st}, st.Storage().PutBytes(ctx, "k", []byte("v"))
		})
		host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, class)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := host.Wake(ctx, class.ID("a")); !errors.Is(err, object.ErrUnknown) {
			t.Errorf("O20: Wake returned %v", err)
		}
		time.Sleep(time.Minute)
		if in, err := host.Inspect(context.Background(), class.ID("a")); err != nil || !in.Exists || ended != nil {
			t.Errorf("O20: after the constructor: %+v, %v, its context ended with %v", in, err, ended)
		}
		if err := host.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// Proves O24: the context of a handler ends HandlerTimeout after its turn has begun, and not before, with and
// without Detached; the wait for the turn does not count, and the handler may commit all the same.
func TestHandlerTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		const limit = time.Minute
		for _, c := range []struct {
			name string
			opts []object.CallOption
			work time.Duration // the handler's
			ends error
		}{
			{"just before", []object.CallOption{object.HandlerTimeout(limit)}, limit - 1, nil},
			{"just after", []object.CallOption{object.HandlerTimeout(limit)}, limit + 1, object.ErrTimeout},
			{"detached, before", []object.CallOption{object.Detached(), object.HandlerTimeout(limit)}, limit - 1, nil},
			{"detached, after", []object.CallOption{object.Detached(), object.HandlerTimeout(limit)}, limit + 1, object.ErrTimeout},
			{"none", []object.CallOption{object.HandlerTimeout(0)}, limit + 1, nil},
		} {
			gate := make(chan struct{})
			go f.call(c.name, until(gate))
			pass(0)
			var ended error
			var ran time.Duration
			fn := func(th *thing, ctx context.Context) (any, error) {
				began := time.Now()
				select {
				case <-ctx.Done():
				case <-time.After(c.work):
				}
				ran, ended = time.Since(began), context.Cause(ctx)
				return nil, th.st.Storage().PutBytes(context.WithoutCancel(ctx), "k", []byte("v"))
			}
			answered := make(chan error, 1)
			go func() { _, err := f.call(c.name, fn, c.opts...); answered <- err }()
			pass(2 * limit) // in the mailbox
			close(gate)
			if err := <-answered; err != nil || f.stored(c.name, "k") != "v" {
				t.Errorf("O24: %s: %v, stored %q", c.name, err, f.stored(c.name, "k"))
			}
			if !errors.Is(ended, c.ends) || (ended == nil) != (c.ends == nil) || ran != min(c.work, limit) && c.ends != nil {
				t.Errorf("O24: %s: the context ended with %v after %v, want %v", c.name, ended, ran, c.ends)
			}
		}
	})
}

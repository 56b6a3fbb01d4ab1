package object_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves O4: a constructor fails while a call and a request of the runtime itself wait
// for the object. The call is refused; the request goes on with the next activation.
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

// Proves O8, O15: an object is deleted while its turn is lent out. The handler gets
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

// Proves O8, O6: an activation is reset while its turn is lent out. The handler gets
// ErrReset.
func TestResetWhileLentOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
			err := th.st.Release(ctx, func(context.Context) error {
				_, err := f.call("a", func(*thing, context.Context) (any, error) { panic("boom") })
				if !errors.Is(err, object.ErrPanic) {
					t.Errorf("O6: the turn between: %v", err)
				}
				return nil
			})
			if !errors.Is(err, object.ErrReset) {
				t.Errorf("O8: Release says %v", err)
			}
			return nil, nil
		})
		if !errors.Is(err, object.ErrReset) {
			t.Errorf("O8: the turn says %v", err)
		}
	})
}

// Proves O13: a Watch that begins after the end of its host gets the reason of the end.
func TestWatchAfterTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		f.close()
		for _, err := range f.host.Watch(context.Background(), f.id("a"), 0) {
			if !errors.Is(err, object.ErrShutdown) {
				t.Errorf("Watch says %v", err)
			}
		}
	})
}

// Without bytes an argument is the zero value of a struct, and a mistake for any other
// type.
func TestCallWithoutBytes(t *testing.T) {
	type order struct{ N int }
	class := object.Define("desk", func(context.Context, *object.State) (*struct{}, error) { return new(struct{}), nil })
	object.Handle(class, "order", func(_ *struct{}, _ context.Context, o order) (int, error) { return o.N, nil })
	object.Handle(class, "number", func(_ *struct{}, _ context.Context, n int) (int, error) { return n, nil })
	f := newFixture(t).open(class)
	defer f.close()
	for _, c := range []struct{ method, arg, want string }{
		{"order", "", "0"}, {"order", `{"N":7}`, "7"}, {"number", "8", "8"}, {"number", "", ""}, {"order", "{", ""}, {"none", "", ""},
	} {
		got, err := f.host.CallBytes(context.Background(), "desk", "a", c.method, []byte(c.arg))
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s(%s) = %q, %v, want %q", c.method, c.arg, got, err, c.want)
		}
	}
}

// Metrics show the tasks of an object until it is deleted or fails, also when it has
// left memory.
func TestBacklogGoesWithItsObject(t *testing.T) {
	ends := map[string]func(f *fixture){
		"deleted": func(f *fixture) { _ = f.host.Delete(context.Background(), f.id("a")) },
		"failed":  func(f *fixture) { _, _ = f.call("a", func(*thing, context.Context) (any, error) { panic("boom") }) },
		"evicted": func(*fixture) { pass(time.Hour) },
	}
	for name, end := range ends {
		bubble(t, func(t *testing.T) {
			f := newFixture(t).open()
			defer f.close()
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				th.st.Driver().Backlog().Set(object.Tasks{Pending: 2})
				return nil, th.st.Storage().PutBytes(ctx, "k", nil)
			})
			shown := func() bool {
				registry := prometheus.NewPedanticRegistry()
				registry.MustRegister(collectNow(f.host.Collector()))
				families, err := registry.Gather()
				if err != nil {
					t.Fatal(err)
				}
				for _, family := range families {
					if family.GetName() == "holdfast_tasks_pending" {
						return family.GetMetric()[0].GetGauge().GetValue() == 2
					}
				}
				return false
			}
			if !shown() {
				t.Error("the tasks are not shown")
			}
			end(f)
			if got := shown(); got != (name == "evicted") {
				t.Errorf("an object that was %s: its tasks are shown: %v", name, got)
			}
		})
	}
}

package object_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/engine"
)

// meddling is an engine that calls a function once, before the next read.
type meddling struct {
	engine.Engine
	next atomic.Pointer[func()]
}

func (e *meddling) meddle() {
	if f := e.next.Swap(nil); f != nil {
		(*f)()
	}
}

func (e *meddling) Get(key []byte) ([]byte, io.Closer, error) {
	e.meddle()
	return e.Engine.Get(key)
}

func (e *meddling) NewIter(lower, upper []byte) (engine.Iterator, error) {
	e.meddle()
	return e.Engine.NewIter(lower, upper)
}

// A turn reads nothing once its object has been deleted under it, because it would see
// half of an old object and half of a new one. Proves O9 and O15.
func TestReadOfADeletedObject(t *testing.T) {
	reads := map[string]func(st *object.State, ctx context.Context) error{
		"Get": func(st *object.State, ctx context.Context) error {
			_, _, err := st.Storage().Get(ctx, "a")
			return err
		},
		"List": func(st *object.State, ctx context.Context) error {
			for _, err := range st.Storage().List(ctx, object.ListOptions{}) {
				return err
			}
			return nil
		},
		"Marked": func(st *object.State, ctx context.Context) error {
			_, _, err := st.Marked(ctx, "a")
			return err
		},
	}
	for name, read := range reads {
		bubble(t, func(t *testing.T) {
			f := newFixture(t)
			e := &meddling{Engine: f.mem}
			f.options.Storage.Engine = e
			f.open()
			f.must("x", put("a", "1"))
			synctest.Wait() // no other goroutine reads
			remove := func() {
				if err := f.host.Delete(context.Background(), f.id("x")); err != nil {
					t.Error(err)
				}
			}
			_, err := f.call("x", func(th *thing, ctx context.Context) (any, error) {
				e.next.Store(&remove)
				if err := read(th.st, ctx); !errors.Is(err, object.ErrReset) {
					t.Errorf("%s in the turn of a deleted object: %v", name, err)
				}
				return nil, nil
			})
			if !errors.Is(err, object.ErrReset) {
				t.Errorf("the turn of a deleted object: %v", err)
			}
			f.close()
		})
	}
}

// An object is deleted while an activation is about to run its constructor. That
// activation runs no constructor, because it might see half of the object. Proves O9 and
// O15.
func TestConstructorOfADeletedObject(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.open()
		f.must("x", put("a", "1"))
		f.close()
		constructed := 0
		f.handleConstruct(func(context.Context, *thing) error { constructed++; return nil })
		e := &meddling{Engine: f.mem}
		f.options.Storage.Engine = e
		f.open()
		defer f.close()
		synctest.Wait() // no other goroutine reads
		remove := func() {
			if err := f.host.Delete(context.Background(), f.id("x")); err != nil {
				t.Error(err)
			}
		}
		e.next.Store(&remove)
		if _, err := f.call("x", get("a")); !errors.Is(err, object.ErrReset) || constructed != 0 {
			t.Errorf("the call that was about to construct it: %v, after %d constructors", err, constructed)
		}
		if got := f.must("x", get("a")); got != "" || constructed != 1 {
			t.Errorf("the next call reads %q, after %d constructors", got, constructed)
		}
	})
}

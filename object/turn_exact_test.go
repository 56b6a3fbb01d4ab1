package object_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves O13: a turn cannot call another object once its store has died.
func TestCallFromATurnOfADeadStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		d := f.slow()
		f.open()
		for _, name := range []string{"a", "b", "c"} {
			f.must(name, nothing)
		}
		_, _ = f.call("a", func(th *thing, ctx context.Context) (any, error) {
			d.fail.Store(true)
			if _, err := f.call("c", put("k", "v")); !errors.Is(err, object.ErrStorage) {
				t.Errorf("O13: the call under which the store dies: %v", err)
			}
			_, err := f.do.Call(ctx, th.st, "b", func(*thing, context.Context) (any, error) { t.Error("O13: b runs"); return nil, nil })
			if !errors.Is(err, object.ErrStorage) {
				t.Errorf("O13: a call of b: %v", err)
			}
			return nil, nil
		})
		_ = f.host.Shutdown(context.Background())
	})
}

// Proves O12: Err of a handler's context returns the error of its caller's context, also
// before the first call of Done.
func TestErrOfAContextWithoutDone(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	f.must("a", nothing)
	ctx, cancel := context.WithCancel(context.Background())
	_, _ = f.do.Call(ctx, f.host, "a", func(_ *thing, inner context.Context) (any, error) {
		if err := inner.Err(); err != nil {
			t.Errorf("before the caller's end: %v", err)
		}
		cancel()
		if err := inner.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("after the caller's end: %v", err)
		}
		return nil, nil
	})
}

// Proves S1: a turn of an object that does not exist stores nothing if it only reads, or
// deletes keys that do not exist.
func TestNothingIsStoredOfNoObject(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	before := f.host.Store().Applied()
	f.must("a", func(th *thing, ctx context.Context) (any, error) {
		s, d := th.st.Storage(), th.st.Driver()
		_, errDelete := s.Delete(ctx, "k")
		_, errMarks := d.MarksEnd(ctx)
		n, errWritten := d.WrittenBytes(ctx)
		for item, err := range s.List(ctx, object.ListOptions{}) {
			return nil, fmt.Errorf("listed: %v, %w", item, err)
		}
		if n != 0 {
			t.Errorf("%d bytes are written", n)
		}
		return nil, errors.Join(errDelete, errMarks, errWritten, s.Remove(ctx, "k"), s.DeletePrefix(ctx, "k"), s.DeleteAll(ctx),
			d.CloseExecution(ctx), th.st.DeleteAlarm(ctx))
	})
	if after := f.host.Store().Applied(); after != before {
		t.Errorf("S1: commits %v and %v", before, after)
	}
}

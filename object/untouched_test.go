package object_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// ledger is an object of which each method fails in its own way.
type ledger struct{ st *object.State }

// errFailed is the error of a handler.
var errFailed = errors.New("no")

// Proves O21: the error of a call by bytes is untouched exactly if nothing of the call is stored.
func TestUntouched(t *testing.T) {
	class := object.Define("ledger", func(_ context.Context, st *object.State) (*ledger, error) { return &ledger{st}, nil })
	var host *object.Host
	method := func(name string, fn func(l *ledger, ctx context.Context) error) {
		object.Handle(class, name, func(l *ledger, ctx context.Context, _ struct{}) (struct{}, error) { return struct{}{}, fn(l, ctx) })
	}
	write := func(l *ledger, ctx context.Context) { _ = l.st.Storage().Put(ctx, "k", 1) }
	other := func(ctx context.Context, method string) error {
		_, err := host.CallBytes(ctx, "ledger", "other", method, nil)
		return err
	}
	method("read", func(*ledger, context.Context) error { return nil })
	method("refuse", func(*ledger, context.Context) error { return errFailed })
	method("write", func(l *ledger, ctx context.Context) error { write(l, ctx); return errFailed })
	method("panic", func(l *ledger, ctx context.Context) error { write(l, ctx); panic(errFailed) })
	method("sync", func(l *ledger, ctx context.Context) error {
		write(l, ctx)
		return errors.Join(l.st.Sync(ctx), errFailed)
	})
	method("release", func(l *ledger, ctx context.Context) error {
		write(l, ctx)
		return errors.Join(l.st.Release(ctx, func(context.Context) error { return nil }), errFailed)
	})
	method("lend", func(l *ledger, ctx context.Context) error {
		return l.st.Release(ctx, func(ctx context.Context) error { return errors.Join(other(ctx, "read"), errFailed) })
	})
	method("call", func(_ *ledger, ctx context.Context) error { return errors.Join(other(ctx, "read"), errFailed) })
	method("pass on", func(_ *ledger, ctx context.Context) error { return other(ctx, "refuse") })
	method("fresh", func(l *ledger, ctx context.Context) error {
		write(l, ctx)
		_ = l.st.Sync(ctx)
		return other(context.WithoutCancel(context.Background()), "refuse")
	})
	method("circle", func(_ *ledger, ctx context.Context) error {
		_, err := host.CallBytes(ctx, "ledger", "a", "read", nil)
		return err
	})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, class)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = host.Shutdown(context.Background()) }()
	for _, c := range []struct {
		class, method, arg string
		untouched          bool
		is                 error
	}{
		{"no", "read", "", true, object.ErrUnknownClass},
		{"ledger", "no", "", true, object.ErrUnknownMethod},
		{"ledger", "read", "{", true, object.ErrBadArgument},
		{"ledger", "refuse", "", true, errFailed},
		{"ledger", "write", "", true, errFailed},
		{"ledger", "panic", "", true, object.ErrPanic},
		{"ledger", "circle", "", true, object.ErrDeadlock},
		{"ledger", "sync", "", false, errFailed},
		{"ledger", "release", "", false, errFailed},
		{"ledger", "lend", "", false, errFailed},
		{"ledger", "call", "", false, errFailed},
		{"ledger", "pass on", "", false, errFailed},
		{"ledger", "fresh", "", false, errFailed},
	} {
		_, err := host.CallBytes(t.Context(), c.class, "a", c.method, []byte(c.arg))
		if !errors.Is(err, c.is) || object.Untouched(err) != c.untouched {
			t.Errorf("O21: %s of %s: %v, untouched %v, want %v", c.method, c.class, err, object.Untouched(err), c.untouched)
		}
		if in, err := host.Inspect(t.Context(), class.ID("a")); err != nil || in.Exists && c.untouched {
			t.Errorf("O21: after %s the store has %+v, %v", c.method, in, err)
		}
		_ = host.Delete(t.Context(), class.ID("a"))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := host.CallBytes(ended, "ledger", "a", "read", nil); !object.Untouched(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("O21: a call that never began: %v", err)
	}
	if err := host.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := host.CallBytes(t.Context(), "ledger", "a", "read", nil); !object.Untouched(err) || !errors.Is(err, object.ErrShutdown) {
		t.Errorf("O21: a call after Shutdown: %v", err)
	}
	if object.Untouched(nil) || object.Untouched(errFailed) {
		t.Error("O21: an error of no call is untouched")
	}
}

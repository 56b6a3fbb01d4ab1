package object_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// visit is a call of an object, and the calls that its handler makes in turn.
type visit struct {
	name string
	mode string // how the handler waits for the calls
	key  string // idempotency key; empty: none
	then []visit
}

func drawVisit(rt *rapid.T, depth int) visit {
	v := visit{
		name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name"),
		mode: rapid.SampledFrom([]string{"held", "release", "await"}).Draw(rt, "mode"),
		key:  rapid.SampledFrom([]string{"", "", "k"}).Draw(rt, "key"),
	}
	if depth > 0 {
		for range rapid.IntRange(0, 2).Draw(rt, "calls") {
			v.then = append(v.then, drawVisit(rt, depth-1))
		}
	}
	return v
}

// visitors is a class with handlers that make a given list of calls.
func visitors() (*object.Class[object.State], func(context.Context, object.Caller, visit) error) {
	class := object.Define("visited", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	var do *object.Method[visit, int]
	call := func(ctx context.Context, from object.Caller, v visit) error {
		var opts []object.CallOption
		if v.key != "" {
			opts = append(opts, object.Idempotent(v.key, time.Hour))
		}
		_, err := do.Call(ctx, from, v.name, v, opts...)
		return err
	}
	do = object.Handle(class, "do", func(st *object.State, ctx context.Context, v visit) (int, error) {
		all := func(ctx context.Context) (err error) {
			for _, next := range v.then {
				if err = st.Driver().Seams().Sleep(ctx, time.Millisecond); err == nil { // others get in
					err = call(ctx, st, next)
				}
				if err != nil && !errors.Is(err, object.ErrDeadlock) {
					return err
				}
			}
			return nil
		}
		switch v.mode {
		case "release":
			return 0, st.Release(ctx, all)
		case "await":
			done, failed := make(chan struct{}), error(nil)
			st.Driver().Seams().Executor.Go("handler", func() {
				defer close(done)
				failed = all(ctx)
			})
			return 0, errors.Join(st.Await(ctx, done), failed)
		}
		return 0, all(ctx)
	})
	return class, call
}

// Case OB1: objects call one another at random. Each call returns, with an answer or with
// ErrDeadlock. Proves O8, O16.
func TestRandomCallsAllEnd(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, rt *rapid.T) {
		class, call := visitors()
		s.Host(class)
		clients := rapid.IntRange(1, 4).Draw(rt, "clients")
		under := clients
		for range clients {
			v := drawVisit(rt, 3)
			s.Go("client", func() {
				err := call(s.Context(), s, v)
				if err != nil && !harness.Unknown(err) && !errors.Is(err, object.ErrDeadlock) && !errors.Is(err, harness.ErrDown) {
					s.Errorf("O8: the call %+v came back with %v", v, err)
				}
				under--
			})
		}
		s.Advance(time.Hour)
		s.Finally("O8: every call ends", func() error {
			if under > 0 {
				return fmt.Errorf("%d of %d calls hang", under, clients)
			}
			return nil
		})
	})
}

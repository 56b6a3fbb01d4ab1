package object_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// stall is an object whose total grows by each price.
type stall struct{ st *object.State }

type price struct {
	Cents int
	For   string
}

// stalls is a class with the method pay, which returns the new total. A price of 0 cents fails.
func stalls(handle func()) (*object.Class[stall], *object.Method[price, int]) {
	class := object.Define("stall", func(_ context.Context, st *object.State) (*stall, error) { return &stall{st}, nil })
	return class, object.Handle(class, "pay", func(x *stall, ctx context.Context, p price) (total int, err error) {
		handle()
		if p.Cents == 0 {
			return 0, errors.New("nothing to pay")
		}
		if _, err := x.st.Storage().GetInto(ctx, "total", &total); err != nil {
			return 0, err
		}
		return total + p.Cents, x.st.Storage().Put(ctx, "total", total+p.Cents)
	})
}

// Proves O16: a repeat by CallBytes with another argument is refused, runs nothing and changes nothing, also
// after a restart. The same argument in another form of JSON gets the first answer. A typed call neither
// stores a fingerprint nor compares one.
func TestKeyReused(t *testing.T) {
	runs := 0
	class, pay := stalls(func() { runs++ })
	o := object.Options{Dir: t.TempDir()}
	h, err := object.Open(o, class)
	if err != nil {
		t.Fatal(err)
	}
	ctx, key := t.Context(), object.Idempotent("k", time.Hour)
	bytes := func(arg, want string) {
		t.Helper()
		before := runs
		got, err := h.CallBytes(ctx, "stall", "a", "pay", []byte(arg), key)
		switch {
		case want != "":
			if err != nil || string(got) != want {
				t.Errorf("O16: %s is answered by %s, %v, want %s", arg, got, err, want)
			}
		case !errors.Is(err, object.ErrKeyReused) || object.Retryable(err) || !strings.HasPrefix(err.Error(), "stall/a: ") || !strings.Contains(err.Error(), `"k" of method pay`):
			t.Errorf("O16: %s is answered by %s, %v, want ErrKeyReused", arg, got, err)
		case runs != before:
			t.Errorf("O16: %s has run", arg)
		}
	}
	if _, err := h.CallBytes(ctx, "stall", "a", "pay", []byte(`{"Cents":0}`), key); err == nil {
		t.Error("a failing call has an answer")
	}
	bytes(`{"Cents":5,"For":"tea"}`, "5") // the failed call has not taken the key
	for range 2 {
		bytes(` { "For" : "tea", "Cents" : 5 }`, "5")
		bytes(`{"Cents":5,"For":"te\u0061"}`, "5")
		bytes(`{"Cents":6,"For":"tea"}`, "")
		bytes(`{"Cents":5}`, "")
		bytes(``, "")
		if got, err := pay.Call(ctx, h, "a", price{7, "cake"}, key); got != 5 || err != nil {
			t.Errorf("O16: a typed repeat is answered by %d, %v", got, err)
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		if h, err = object.Open(o, class); err != nil {
			t.Fatal(err)
		}
	}
	defer h.Shutdown(ctx)
	key = object.Idempotent("typed", time.Hour)
	if got, err := pay.Call(ctx, h, "a", price{1, "milk"}, key); got != 6 || err != nil {
		t.Fatal(got, err)
	}
	bytes(`{"Cents":2}`, "6")
	key = object.Idempotent("other", time.Hour)
	bytes(`{"Cents":2}`, "8")
	if runs != 4 { // the failed one, the first, the typed one and the other
		t.Errorf("O16: %d runs", runs)
	}
}

// Proves O16: the fingerprint expires with the answer, and not before.
func TestKeyReusedAfterItsTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		class, _ := stalls(func() {})
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, class)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Shutdown(context.Background())
		call := func(arg string) ([]byte, error) {
			return h.CallBytes(context.Background(), "stall", "a", "pay", []byte(arg), object.Idempotent("k", time.Hour))
		}
		if got, err := call(`{"Cents":1}`); string(got) != "1" || err != nil {
			t.Fatal(string(got), err)
		}
		time.Sleep(time.Hour - time.Nanosecond)
		if got, err := call(`{"Cents":2}`); !errors.Is(err, object.ErrKeyReused) {
			t.Errorf("O16: before the end: %s, %v", got, err)
		}
		time.Sleep(time.Nanosecond)
		if got, err := call(`{"Cents":2}`); string(got) != "3" || err != nil {
			t.Errorf("O16: after the end: %s, %v", got, err)
		}
		if got, err := call(`{"Cents":1}`); !errors.Is(err, object.ErrKeyReused) {
			t.Errorf("O16: with the new answer: %s, %v", got, err)
		}
	})
}

// Proves O16: a repeat with another argument that waits for the first call is refused when that has
// its answer, and runs if that fails.
func TestKeyReusedWhileTheFirstRuns(t *testing.T) {
	for _, fails := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			gate, began := make(chan struct{}), 0
			class := object.Define("slow", func(_ context.Context, st *object.State) (*stall, error) { return &stall{st}, nil })
			object.Handle(class, "pay", func(x *stall, ctx context.Context, p price) (int, error) {
				if began++; began > 1 {
					return p.Cents, nil
				}
				err := x.st.Release(ctx, func(context.Context) error { <-gate; return nil })
				if fails {
					err = errors.New("no")
				}
				return p.Cents, err
			})
			h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, class)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Shutdown(context.Background())
			answers := make(chan error, 2)
			var second []byte
			call := func(arg string, got *[]byte) {
				b, err := h.CallBytes(context.Background(), "slow", "a", "pay", []byte(arg), object.Idempotent("k", time.Hour))
				*got = b
				answers <- err
			}
			go call(`{"Cents":1}`, new([]byte))
			pass(0)
			go call(`{"Cents":2}`, &second)
			pass(0)
			close(gate)
			first, repeat := <-answers, <-answers
			if errors.Is(first, object.ErrKeyReused) {
				first, repeat = repeat, first
			}
			if fails && (string(second) != "2" || errors.Is(repeat, object.ErrKeyReused)) || !fails && (first != nil || !errors.Is(repeat, object.ErrKeyReused) || began != 1) {
				t.Errorf("O16: fails %v: %v, and %v with %q; %d runs", fails, first, repeat, second, began)
			}
		})
	}
}

// Proves O16 through crashes: of two calls with one key and different arguments, one has an answer in the end
// and the other none, however often they are repeated.
func TestCrashKeyReused(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		class, _ := stalls(func() {})
		s.Host(class)
		call := func(arg string) (got []byte, err error) {
			err = s.Retry(func() error {
				return s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
					got, err = h.CallBytes(ctx, "stall", "a", "pay", []byte(arg), object.Idempotent("k", time.Hour))
					return err
				})
			})
			return got, err
		}
		got, err := call(`{"Cents":5}`)
		s.Always("O16: the first call is answered", string(got) == "5" && err == nil, got, err)
		got, err = call(`{"Cents":7}`)
		s.Always("O16: the other is refused", errors.Is(err, object.ErrKeyReused), got, err)
		got, err = call(`{"Cents":5}`)
		s.Always("O16: a repeat has the first answer", string(got) == "5" && err == nil, got, err)
	})
}

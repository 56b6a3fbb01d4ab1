package object_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves S7, O12: a value that the codec does not encode is an error that names the
// object and the key, and changes nothing.
func TestValuesThatDoNotEncode(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	bad := make(chan int)
	for name, c := range map[string]struct {
		fn   func(ctx context.Context, th *thing) error
		want string
	}{
		"Put": {func(ctx context.Context, th *thing) error { return th.st.Storage().Put(ctx, "k", bad) }, `thing/a: encode key "k"`},
		"PutBatch": {func(ctx context.Context, th *thing) error {
			return th.st.Storage().PutBatch(ctx, []object.Entry{{Key: "good", Value: 1}, {Key: "bad", Value: bad}})
		}, `thing/a: encode key "bad"`},
		"Emit": {func(ctx context.Context, th *thing) error { return th.st.Emit(ctx, "kind", bad) }, "thing/a: encode event kind"},
		"GetInto": {func(ctx context.Context, th *thing) error {
			if err := th.st.Storage().PutBytes(ctx, "text", []byte("{")); err != nil {
				return err
			}
			var n int
			_, err := th.st.Storage().GetInto(ctx, "text", &n)
			return err
		}, `thing/a: decode key "text"`},
	} {
		_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) { return nil, c.fn(ctx, th) })
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
		return bad, th.st.Storage().PutBytes(ctx, "k", nil)
	}, object.Idempotent("key", time.Hour))
	if err == nil || !strings.HasPrefix(err.Error(), "thing/a: encode the answer of do") {
		t.Errorf("an answer to keep: %v", err)
	}
	if in, err := f.host.Inspect(context.Background(), f.id("a")); err != nil || in.Exists {
		t.Errorf("the refused answer has left %+v, %v", in, err)
	}
	if events, err := f.host.Events(context.Background(), f.id("a"), 0, 10); err != nil || len(events) != 0 {
		t.Errorf("the refused answer has events: %v, %v", events, err)
	}
}

// Proves O4: a constructor that returns neither an instance nor an error has failed.
func TestConstructorOfNothing(t *testing.T) {
	class := object.Define("void", func(context.Context, *object.State) (*struct{}, error) { return nil, nil })
	touch := object.Handle(class, "touch", func(*struct{}, context.Context, int) (int, error) { return 0, nil })
	f := newFixture(t).open(class)
	defer f.close()
	_, err := touch.Call(context.Background(), f.host, "a", 0)
	if !errors.Is(err, object.ErrConstructor) || !strings.Contains(err.Error(), "constructor returned nil without an error") {
		t.Error(err)
	}
}

// Proves S7, O16: a mark is refused exactly when it might not fit into the turn, and so
// is an answer that is longer than a value may be.
func TestMarksAtTheBound(t *testing.T) {
	const record, more = 24, 2*24 + 3*16
	of := func(key string, value int) int {
		return 2*len(key) + value + len("thing") + 1 + len("a name") + more + record
	}
	for name, c := range map[string]struct {
		fn    action
		bound int
		opts  []object.CallOption
	}{
		"Mark": {func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Mark(ctx, "key", make([]byte, 50), time.Hour)
		}, of("u/key", 50), nil},
		"MarkNew": {func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Driver().MarkNew(ctx, "key", make([]byte, 50), time.Hour)
		}, of("u/key", 50), nil},
		"answer": {func(*thing, context.Context) (any, error) { return strings.Repeat("x", 99), nil },
			of("a/do\x00key", 101), []object.CallOption{object.Idempotent("key", time.Hour)}},
	} {
		for most, fits := range map[int]bool{c.bound: true, c.bound - 1: false} {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.options.MaxBatchBytes, f.options.MaxValueBytes = most, 100
				f.open()
				defer f.close()
				_, err := f.call("a name", c.fn, c.opts...)
				if fits && err != nil || !fits && !errors.Is(err, object.ErrBatchTooLarge) {
					t.Errorf("S7: %s of %d bytes in a turn of %d: %v", name, c.bound, most, err)
				}
			})
		}
	}
	f := newFixture(t)
	f.options.MaxBatchBytes, f.options.MaxValueBytes = 200, 100
	f.open()
	defer f.close()
	for size, fits := range map[int]bool{98: true, 99: false} { // with its quotes an answer of 100 bytes is kept beside anything
		_, err := f.call("b", func(th *thing, ctx context.Context) (any, error) {
			err := th.st.Storage().PutBytes(ctx, "k", make([]byte, 100))
			return strings.Repeat("x", size), err
		}, object.Idempotent(strings.Repeat("k", size), time.Hour))
		if fits && err != nil || !fits && !errors.Is(err, object.ErrBatchTooLarge) {
			t.Errorf("S7: an answer of %d bytes beside a full turn: %v", size+2, err)
		}
	}
}

// Proves O16: an answer is kept for the time that was asked for, and for a day if none
// was, to the nanosecond.
func TestTimeOfAnAnswer(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{0: 24 * time.Hour, time.Minute: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t).open()
			defer f.close()
			runs := 0
			call := func() {
				f.must("a", func(*thing, context.Context) (any, error) { runs++; return runs, nil }, object.Idempotent("k", asked))
			}
			call()
			time.Sleep(want - 1)
			if call(); runs != 1 {
				t.Errorf("O16: asked for %v: it ran again before its time", asked)
			}
			time.Sleep(time.Nanosecond)
			if call(); runs != 2 {
				t.Errorf("O16: asked for %v: it did not run again at its time", asked)
			}
		})
	}
}

// Proves O16: an idempotency key is refused when it is longer than a key may be, with the
// name of its method.
func TestIdempotencyKeyAtTheBound(t *testing.T) {
	f := newFixture(t)
	f.options.MaxKeyBytes = 20
	f.open()
	defer f.close()
	for size, fits := range map[int]bool{15: true, 16: false} { // a/do and a zero byte come before it
		_, err := f.call("a", nothing, object.Idempotent(strings.Repeat("k", size), time.Hour))
		if fits && err != nil || !fits && !errors.Is(err, object.ErrKeyTooLarge) {
			t.Errorf("O16: a key of %d bytes: %v", size, err)
		}
	}
}

package object_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/object"
)

const limitBytes = 4096

// limited is a fixture with a limit of limitBytes for each turn.
func limited(t testing.TB) *fixture {
	f := newFixture(t)
	f.options.MaxBatchBytes = limitBytes
	f.options.MaxValueBytes = limitBytes
	return f.open()
}

// fill writes with write, called with 0, 1, 2 and so on, until the turn is full.
func fill(write func(i int) error) error {
	for i := 0; ; i++ {
		switch err := write(i); {
		case errors.Is(err, object.ErrBatchTooLarge):
			return nil
		case err != nil:
			return err
		case i > limitBytes:
			return fmt.Errorf("%d writes of some bytes fit into %d", i, limitBytes)
		}
	}
}

// A turn that writes until it is refused commits all accepted writes, for each way to
// write, each size, an object with the longest name, and all that the runtime adds at the
// commit: the header, an alarm in place of another, the answer of a keyed call.
//
// Case ST2. Proves S7.
func TestWhatIsAcceptedCommits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := limited(t)
		defer f.close()
		name := strings.Repeat("n", rapid.SampledFrom([]int{1, 1024}).Draw(rt, "name"))
		how := rapid.SampledFrom([]string{"put", "batch", "mark", "emit", "delete", "remove", "open"}).Draw(rt, "how")
		key, size := rapid.IntRange(0, 60).Draw(rt, "key"), rapid.IntRange(0, 200).Draw(rt, "value")
		exists := rapid.Bool().Draw(rt, "exists")
		var opts []object.CallOption
		if rapid.Bool().Draw(rt, "keyed") {
			opts = append(opts, object.Idempotent("key", time.Hour))
		}
		if exists {
			f.must(name, setAlarm(time.Hour))
		}
		if how == "delete" || how == "remove" {
			f.must(name, put("stored", ""))
		}
		_, err := f.call(name, func(th *thing, ctx context.Context) (any, error) {
			s := th.st.Storage()
			value := make([]byte, size)
			keyOf := func(i int) string { return fmt.Sprintf("%0*d", 1+key, i) }
			err := fill(func(i int) error {
				switch how {
				case "batch":
					return s.PutBatch(ctx, []object.Entry{{Key: keyOf(2 * i)}, {Key: keyOf(2*i + 1), Value: value}})
				case "mark":
					return th.st.Mark(ctx, keyOf(i), value, time.Hour)
				case "emit":
					return th.st.Emit(ctx, keyOf(i), value)
				case "delete":
					return errors.Join(s.PutBytes(ctx, "stored", value), second(s.Delete(ctx, "stored")))
				case "remove":
					return s.Remove(ctx, keyOf(i))
				case "open":
					return th.st.Driver().OpenExecution(ctx, value)
				}
				return s.PutBytes(ctx, keyOf(i), value)
			})
			return "answer", errors.Join(err, th.st.SetAlarm(ctx, th.st.Now().Add(2*time.Hour)))
		}, opts...)
		if err != nil {
			rt.Errorf("%s: %v", how, err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// The bound is near on both sides. A refused write would have made the turn larger than
// the limit, by its own bytes or together with the least bytes that a record takes.
//
// Case ST2. Proves S7.
func TestBatchBoundIsNear(t *testing.T) {
	const mostBytes = 24 // assumed for a record, beside its key and value
	f := limited(t)
	defer f.close()
	try := func(size int) error {
		_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
			if err := th.st.Storage().PutBytes(ctx, "first", nil); err != nil {
				return nil, err
			}
			written, err := th.st.Driver().WrittenBytes(ctx)
			if err != nil {
				return nil, err
			}
			return nil, th.st.Storage().PutBytes(ctx, "k", make([]byte, limitBytes-written-mostBytes-len("k")+size))
		})
		return err
	}
	if err := try(0); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if err := try(1); !errors.Is(err, object.ErrBatchTooLarge) {
		t.Errorf("one byte beyond the limit: %v", err)
	}
}

// A removal of many keys as a range has no record for each of them.
func TestRecordsOfARemoval(t *testing.T) {
	for what, remove := range map[string]action{
		"DeleteAll": func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Storage().DeleteAll(ctx) },
		"Purge":     func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().Purge(ctx) },
	} {
		f := newFixture(t)
		r := &recorder{Engine: f.mem}
		f.options.Storage.Engine, f.options.MaxBatchBytes = r, limitBytes
		f.open()
		for part := range 10 {
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				for i := range 10 {
					if err := th.st.Storage().PutBytes(ctx, fmt.Sprintf("%s%d-%d", strings.Repeat("k", 200), part, i), nil); err != nil {
						return nil, err
					}
				}
				return nil, nil
			})
		}
		if f.must("a", remove); len(r.last) > 20 {
			t.Errorf("S7: %s of 100 keys has %d records", what, len(r.last))
		}
		f.close()
	}
}

// Keys that are many bytes are removed as a range, so DeletePrefix, DeleteAll and Purge
// work in a small turn. A removal that does not fit beside a full turn is refused at
// once.
//
// Case ST2. Proves S7, S5.
func TestRemovalOfManyBytesFits(t *testing.T) {
	removals := map[string]action{
		"DeletePrefix": func(th *thing, ctx context.Context) (any, error) {
			return nil, th.st.Storage().DeletePrefix(ctx, strings.Repeat("k", 200))
		},
		"DeleteAll": func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Storage().DeleteAll(ctx) },
		"Purge":     func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().Purge(ctx) },
	}
	for what, remove := range removals {
		f := limited(t)
		for part := range 10 {
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				for i := range 10 {
					if err := th.st.Storage().PutBytes(ctx, fmt.Sprintf("%s%d-%d", strings.Repeat("k", 200), part, i), nil); err != nil {
						return nil, err
					}
				}
				return nil, nil
			})
		}
		f.must("a", remove)
		if in, err := f.host.Inspect(context.Background(), f.id("a")); in.Exists || err != nil {
			t.Errorf("after %s the object exists: %v, %v", what, in.Exists, err)
		}
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			err := fill(func(i int) error { return th.st.Storage().PutBytes(ctx, fmt.Sprint(i), nil) })
			if err != nil {
				return nil, err
			}
			if err := th.st.Storage().DeletePrefix(ctx, ""); !errors.Is(err, object.ErrBatchTooLarge) {
				t.Errorf("DeletePrefix in a full turn: %v", err)
			}
			return nil, nil
		})
		f.close()
	}
}

package recovery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

var errDisk = errors.New("the disk does not answer")

// failing is an engine that fails one read: the one that counts left down to zero. A read
// is a Get, the making of an iterator, or a step of one.
type failing struct {
	*memstore.Store
	left  *atomic.Int64
	iters *atomic.Int64 // that are open
}

func (f failing) fails() error {
	if f.left.Add(-1) == 0 {
		return errDisk
	}
	return nil
}

func (f failing) Get(key []byte) ([]byte, io.Closer, error) {
	if err := f.fails(); err != nil {
		return nil, nil, err
	}
	return f.Store.Get(key)
}

func (f failing) NewIter(lower, upper []byte) (engine.Iterator, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	f.iters.Add(1)
	it, err := f.Store.NewIter(lower, upper)
	return &failingIter{Iterator: it, f: f}, err
}

// failingIter ends at the step that fails.
type failingIter struct {
	engine.Iterator
	f   failing
	err error
}

func (it *failingIter) step(to func() bool) bool {
	if it.err == nil {
		it.err = it.f.fails()
	}
	return it.err == nil && to()
}

func (it *failingIter) First() bool { return it.step(it.Iterator.First) }
func (it *failingIter) Last() bool  { return it.step(it.Iterator.Last) }
func (it *failingIter) Next() bool  { return it.step(it.Iterator.Next) }
func (it *failingIter) Prev() bool  { return it.step(it.Iterator.Prev) }
func (it *failingIter) SeekGE(key []byte) bool {
	return it.step(func() bool { return it.Iterator.SeekGE(key) })
}
func (it *failingIter) SeekLT(key []byte) bool {
	return it.step(func() bool { return it.Iterator.SeekLT(key) })
}
func (it *failingIter) Valid() bool  { return it.err == nil && it.Iterator.Valid() }
func (it *failingIter) Error() error { return errors.Join(it.err, it.Iterator.Error()) }
func (it *failingIter) Close() error {
	it.f.iters.Add(-1)
	return errors.Join(it.err, it.Iterator.Close())
}

// rows is the stored content of an object: keys with bytes, an alarm, a mark.
type rows struct {
	Keys        map[string]string
	Armed, Open bool
	Label       string
}

var (
	plain   = object.Define("ticker", func(_ context.Context, st *object.State) (*rawObject, error) { return &rawObject{st}, nil })
	putRows = object.Handle(plain, "put", func(r *rawObject, ctx context.Context, o rows) (int, error) {
		var errs []error
		for key, value := range o.Keys {
			if key == "meta" {
				var meta map[string]any
				errs = append(errs, json.Unmarshal([]byte(value), &meta), r.st.Storage().Put(ctx, key, named(r.st, meta)))
				continue
			}
			errs = append(errs, r.st.Storage().PutBytes(ctx, key, []byte(value)))
		}
		if o.Armed {
			errs = append(errs, r.st.SetAlarm(ctx, r.st.Now().Add(time.Hour)))
		}
		if o.Open {
			errs = append(errs, r.st.Driver().OpenExecution(ctx, nil))
		}
		errs = append(errs, r.st.Driver().SetLabel(ctx, o.Label))
		return 0, errors.Join(errs...)
	})
)

// objects is one of each kind that a scrub looks at.
var objects = map[string]rows{
	"well":      {Keys: map[string]string{"meta": `{"status":"running"}`}, Armed: true},
	"broken":    {Keys: map[string]string{"meta": `{"status":"executing"}`}, Armed: true},
	"other":     {Keys: map[string]string{"meta": `{"status":"executing","hooks":"none"}`}, Armed: true},
	"partition": {Keys: map[string]string{"c": "\x01\x00\x00\x0b\x02\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00", "x/1": "\x01\x00\x06task/1", "x/2": "\x01\x00\x06task/2"}, Armed: true},
	"torn":      {Keys: map[string]string{"c": "\x01\x00\x00\x0b\x02\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00", "x/1": "\x01\x00\x06task/1", "x/2": "\x01\x00\x08OnDead/1"}, Armed: true},
}

// stored is a store at rest with those objects.
func stored(t *testing.T) *memstore.Store {
	t.Helper()
	mem := memstore.New()
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: mem, Shards: 1}}, plain)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range objects {
		if _, err := putRows.Call(t.Context(), h, name, o); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, h)
	return mem.Crash(0)
}

// eachRead calls walk again and again. In the n-th call the n-th read fails, until a call
// makes fewer reads. walk opens its store, sets left, and returns the error of the walk.
func eachRead(t *testing.T, walk func(t *testing.T, left *atomic.Int64, n int64) error) {
	for n := int64(1); ; n++ {
		left := new(atomic.Int64)
		err := walk(t, left, n)
		if left.Load() > 0 {
			if err != nil || n < 10 {
				t.Errorf("after %d reads: %v", n-1, err)
			}
			return
		}
		if !errors.Is(err, errDisk) {
			t.Errorf("read %d failed, and the walk ends with %v", n, err)
		}
	}
}

// Proves R6, S9: a walk of a store at rest never takes a read that failed for a row that
// is not there.
func TestScrubStoreTellsEachReadThatFails(t *testing.T) {
	eachRead(t, func(t *testing.T, left *atomic.Int64, n int64) error {
		iters := new(atomic.Int64)
		store, err := storage.Open(storage.Options{Engine: failing{stored(t), left, iters}, Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		left.Store(n)
		seen, err := recovery.ScrubStore(store)
		if err == nil && (seen.Objects != len(objects) || len(seen.Findings) != 2) {
			t.Errorf("found %s", list(seen))
		}
		if open := iters.Load(); open != 0 {
			t.Errorf("read %d: %d iterators are open after the walk", n, open)
		}
		at := left.Load()
		_ = store.Close()
		left.Store(at)
		return err
	})
}

// Examine does not take a read that failed for a row that is not there.
func TestExamineTellsEachReadThatFails(t *testing.T) {
	for name := range objects {
		t.Run(name, func(t *testing.T) {
			for n := int64(1); ; n++ {
				left := new(atomic.Int64)
				store, err := storage.Open(storage.Options{Engine: failing{stored(t), left, new(atomic.Int64)}, Shards: 1})
				if err != nil {
					t.Fatal(err)
				}
				o, err := store.Find(storage.ID{Class: "ticker", Name: name})
				if err != nil {
					t.Fatal(err)
				}
				left.Store(n)
				found, err := recovery.Examine(store, o)
				struck := left.Load() <= 0
				_ = store.Close()
				if struck != errors.Is(err, errDisk) || struck && found != nil || !struck && (err != nil || (found != nil) != (name == "broken" || name == "torn")) {
					t.Errorf("read %d: %v, %v", n, found, err)
				}
				if !struck {
					return
				}
			}
		})
	}
}

// Proves R6, S9: a walk of a live store, with and without Repair, does not take a read
// that failed for a row that is not there.
func TestScrubTellsEachReadThatFails(t *testing.T) {
	for _, repair := range []bool{false, true} {
		t.Run(fmt.Sprint(repair), func(t *testing.T) {
			eachRead(t, func(t *testing.T, left *atomic.Int64, n int64) (err error) {
				synctest.Test(t, func(t *testing.T) {
					h, openErr := object.Open(object.Options{Storage: storage.Options{Engine: failing{stored(t), left, new(atomic.Int64)}, Shards: 1}}, plain)
					if openErr != nil {
						t.Fatal(openErr)
					}
					synctest.Wait()
					left.Store(n)
					var seen recovery.Scrubbed
					seen, err = recovery.Scrub(t.Context(), h, recovery.ScrubOptions{Repair: repair, Pause: time.Millisecond})
					if err == nil && (seen.Objects != len(objects) || len(seen.Findings) != 2) {
						t.Errorf("found %s", list(seen))
					}
					at := left.Load()
					left.Store(0) // Shutdown reads too
					_ = h.Shutdown(t.Context())
					left.Store(at)
				})
				return err
			})
		})
	}
}

package object_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Case OB9: a look from outside shows only rows that a loss of power can no longer undo.
// Proves O7, O15.
func TestLooksWaitForTheDisk(t *testing.T) {
	ctx := context.Background()
	for name, look := range map[string]func(h *object.Host, f *fixture) error{
		"Inspect": func(h *object.Host, f *fixture) error { _, err := h.Inspect(ctx, f.id("a")); return err },
		"Objects": func(h *object.Host, _ *fixture) error {
			_, err := h.Objects(ctx, "thing", object.ObjectsOptions{Limit: 10})
			return err
		},
		"Events": func(h *object.Host, f *fixture) error { _, err := h.Events(ctx, f.id("a"), 0, 10); return err },
		"Keys": func(h *object.Host, f *fixture) error {
			_, err := h.Keys(ctx, f.id("a"), object.KeysOptions{})
			return err
		},
		"StoredClasses": func(h *object.Host, _ *fixture) error { _, err := h.StoredClasses(ctx); return err },
		"Read": func(h *object.Host, f *fixture) error {
			return h.Read(ctx, func(r object.Reader) error { _, _, err := r.Value(ctx, f.id("a"), "k"); return err })
		},
		"DeadLetter": func(h *object.Host, f *fixture) error {
			if _, err := h.DeadLetter(ctx, f.id("a"), 1); !errors.Is(err, object.ErrNoDeadLetter) {
				return err
			}
			return nil
		},
		"DeadLetters": func(h *object.Host, _ *fixture) error {
			_, err := lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage}))
			return err
		},
	} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t)
			d := f.slow()
			f.open()
			defer f.end()
			d.hold.Store(true)
			f.must("a", put("k", "v"), object.Unconfirmed())
			var told atomic.Bool
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := look(f.host, f); err != nil {
					t.Error(err)
				}
				told.Store(true)
			})
			synctest.Wait()
			if told.Load() {
				t.Errorf("O7: %s told of a commit that was not durable", name)
			}
			d.hold.Store(false)
			close(d.gate)
			wg.Wait()
		})
	}
}

// Proves O15: many reads of one Host.Read wait for the disk once, and its answers are those of the Reader.
func TestReadWaitsOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, f := t.Context(), newFixture(t)
		d := f.slow()
		f.open()
		defer f.end()
		d.hold.Store(true)
		f.must("a", put("k", "v"), object.Unconfirmed())
		var value []byte
		var ok, told atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			err := f.host.Read(ctx, func(r object.Reader) error {
				for range 100 {
					v, found, err := r.Value(ctx, f.id("a"), "k")
					if err != nil {
						return err
					}
					value = v
					ok.Store(found)
				}
				_, none, err := r.Value(ctx, f.id("a"), "other")
				_, nobody, err2 := r.Value(ctx, f.id("b"), "k")
				if none || nobody {
					t.Error("O15: a key that nobody has stored is there")
				}
				return errors.Join(err, err2)
			})
			if err != nil {
				t.Error(err)
			}
			told.Store(true)
		})
		synctest.Wait()
		if !ok.Load() || told.Load() {
			t.Errorf("O15: read %v, told %v, while the disk does not answer", ok.Load(), told.Load())
		}
		d.hold.Store(false)
		close(d.gate)
		wg.Wait()
		if string(value) != "v" {
			t.Errorf("O15: read %q", value)
		}
		mine := errors.New("mine")
		if err := f.host.Read(ctx, func(object.Reader) error { return mine }); err != mine {
			t.Errorf("the error of the function came as %v", err)
		}
		bad := func(r object.Reader) error { _, _, err := r.Value(ctx, f.id(""), "k"); return err }
		if err := f.host.Read(ctx, bad); !errors.Is(err, object.ErrBadName) {
			t.Errorf("a bad name came as %v", err)
		}
	})
}

// Case OB10: when the store dies during a turn, each later read of the turn fails, also
// one that needs no row. Proves O13.
func TestReadsOfADeadStore(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t)
			d := f.slow()
			f.open()
			f.must("b", nothing)
			if !fresh {
				f.must("a", put("k", "v"))
			}
			_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
				if !fresh {
					if err := th.st.Storage().PutBytes(ctx, "own", nil); err != nil {
						t.Error(err)
					}
				}
				d.fail.Store(true)
				if _, err := f.call("b", put("k", "v")); !errors.Is(err, object.ErrStorage) {
					t.Errorf("O13: the call under which the store dies: %v", err)
				}
				d.fail.Store(false)
				st := th.st
				var listed error
				for _, err := range st.Storage().List(ctx, object.ListOptions{}) {
					listed = errors.Join(listed, err)
				}
				_, _, errGet := st.Storage().Get(ctx, "k")
				_, _, errOwn := st.Storage().Get(ctx, "own")
				_, errBatch := st.Storage().GetBatch(ctx, "k", "other")
				_, _, errMarked := st.Marked(ctx, "m")
				_, errDelete := st.Storage().Delete(ctx, "k")
				reads := map[string]error{
					"Get": errGet, "Get of its own write": errOwn, "GetBatch": errBatch, "Marked": errMarked, "Delete": errDelete, "Sync": st.Sync(ctx), "List": listed,
				}
				for name, err := range reads {
					if !errors.Is(err, object.ErrStorage) {
						t.Errorf("O13: fresh %v: %s of a dead store: %v", fresh, name, err)
					}
				}
				return nil, nil // the handler swallows them all
			})
			if !errors.Is(err, object.ErrStorage) {
				t.Errorf("O13: fresh %v: the reply of a turn that read a dead store: %v", fresh, err)
			}
			_ = f.host.Shutdown(context.Background())
		})
	}
}

// Case OB11: callers that do not wait for the disk are held up when more than
// MaxUnsyncedBytes is not yet durable. Proves S8.
func TestUnconfirmedCallersWaitForAFullPipeline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const value, most = 1000, 10
		f := newFixture(t)
		d := f.slow()
		f.options.Storage.MaxUnsyncedBytes = value * most
		f.open()
		defer f.end()
		f.must("a", nothing)
		d.hold.Store(true)
		var through atomic.Int64
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 10 * most {
				f.must("a", put(fmt.Sprint(i), string(make([]byte, value))), object.Unconfirmed())
				through.Add(1)
			}
		})
		synctest.Wait()
		if n := through.Load(); n < most/2 || n >= most {
			t.Errorf("S8: %d unconfirmed calls of %d bytes came back while at most %d bytes may wait for the disk", n, value, value*most)
		}
		d.hold.Store(false)
		close(d.gate)
		wg.Wait()
		if through.Load() != 10*most {
			t.Errorf("S8: %d calls came back when the disk had caught up", through.Load())
		}
		time.Sleep(2 * time.Second)
	})
}

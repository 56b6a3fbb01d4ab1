package object_test

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// reads are the reads of one turn. Each read that fails must say so, and the handler
// swallows the error.
func (d *dying) reads(ctx context.Context, th *thing) error {
	s := th.st.Storage()
	_, err := s.GetBatch(ctx, "k0", "k1", "none")
	_ = d.read("GetBatch", err)
	for _, o := range []object.ListOptions{{}, {Reverse: true}, {Prefix: "k"}, {Limit: 1}} {
		var listed error
		for _, err := range s.List(ctx, o) {
			listed = errors.Join(listed, err)
		}
		_ = d.read("List", listed)
	}
	var n int
	_, err = s.GetInto(ctx, "k1", &n)
	_ = d.read("GetInto", err)
	return nil
}

// writes are changes that read stored rows.
func (d *dying) writes(ctx context.Context, th *thing) error {
	s := th.st.Storage()
	_, err := s.Delete(ctx, "none")
	_ = d.read("Delete", err)
	if err := s.PutBatch(ctx, []object.Entry{{"p1", 1}, {"p2", 2}}); err != nil {
		return err
	}
	_, err = s.DeleteBatch(ctx, "p1", "none")
	_ = d.read("DeleteBatch", err)
	err = s.Transaction(ctx, func(ctx context.Context, tx *object.Storage) error {
		if err := tx.PutBytes(ctx, "tx", nil); err != nil {
			return err
		}
		_ = d.read("DeletePrefix", tx.DeletePrefix(ctx, "p"))
		_, _, err := tx.Get(ctx, "tx")
		return d.read("Get in a transaction", err)
	})
	_ = d.read("Transaction", err)
	_ = d.read("Sync", th.st.Sync(ctx))
	err = th.st.BlockConcurrencyWhile(ctx, func(ctx context.Context) error {
		_, _, err := th.st.Storage().Get(ctx, "k0")
		return err
	})
	if d.read("BlockConcurrencyWhile", err) != nil {
		return err
	}
	if err := s.PutBytes(ctx, "lent", nil); err != nil {
		return err
	}
	if err := d.read("Release", th.st.Release(ctx, func(context.Context) error { return nil })); err != nil {
		return err
	}
	if err := s.Remove(ctx, "lent"); err != nil {
		return err
	}
	return s.Remove(ctx, "tx")
}

// keys are calls with idempotency keys, and objects that come and go.
func (d *dying) keys() {
	for range 3 {
		d.in("once", func(ctx context.Context, th *thing) error {
			v, _, err := th.st.Storage().Get(ctx, "n")
			if d.read("Get", err) != nil {
				return err
			}
			return th.st.Storage().PutBytes(ctx, "n", append(v, '1'))
		}, object.Idempotent("the key", time.Hour))
	}
	if !d.disk.Failed() {
		d.acked["once/n"] = "1"
	}
	d.put("gone", "k", "v")
	delete(d.acked, "gone/k")
	d.put("emptied", "k", "v")
	delete(d.acked, "emptied/k")
	d.in("emptied", func(ctx context.Context, th *thing) error { return d.read("DeleteAll", th.st.Storage().DeleteAll(ctx)) })
	d.in("emptied", func(ctx context.Context, th *thing) error { return th.st.Storage().PutBytes(ctx, "k", nil) })
	d.in("emptied", func(ctx context.Context, th *thing) error { return th.st.Storage().Remove(ctx, "k") })
	d.put("purged", "k", "v")
	delete(d.acked, "purged/k")
	d.in("purged", func(ctx context.Context, th *thing) error { return th.st.Driver().Purge(ctx) })
}

// marks are those of an object that has nothing else, and of one that has a key.
func (d *dying) marks() {
	d.put("kept", "k", "v")
	for _, name := range []string{"marked", "kept"} {
		for _, key := range []string{"a", "b", "c"} {
			d.in(name, func(ctx context.Context, th *thing) error {
				_, found, err := th.st.Marked(ctx, key)
				if d.read("Marked", err) != nil {
					return err
				}
				if found {
					return errors.New("a mark before it was set")
				}
				return d.read("Mark", th.st.Mark(ctx, key, nil, time.Hour))
			})
		}
		d.in(name, func(ctx context.Context, th *thing) error {
			return d.read("MarkNew", th.st.Driver().MarkNew(ctx, "d", nil, time.Minute))
		})
		if !d.disk.Failed() {
			pass(2 * time.Second) // it leaves memory
			d.after("an eviction", nil)
		}
		d.in(name, func(ctx context.Context, th *thing) error {
			return d.read("MarkNew", th.st.Driver().MarkNew(ctx, "e", nil, time.Hour))
		})
		d.in(name, func(ctx context.Context, th *thing) error {
			return d.read("Mark", th.st.Mark(ctx, "b", nil, 2*time.Hour))
		})
		d.in(name, func(ctx context.Context, th *thing) error {
			_, found, err := th.st.Marked(ctx, "c")
			if d.read("Marked", err) == nil && !found {
				return errors.New("a mark is lost")
			}
			_, end := th.st.Driver().MarksEnd(ctx)
			_ = d.read("MarksEnd", end)
			return err
		})
	}
}

// outside are looks from outside, and events.
func (d *dying) outside() {
	ctx, h := context.Background(), d.f.host
	d.in("tells", func(ctx context.Context, th *thing) error { return th.st.Emit(ctx, "hello", 1) })
	d.do("Events", func() error {
		events, err := h.Events(ctx, d.f.id("tells"), 0, 10)
		if err == nil && len(events) != 1 {
			d.t.Errorf("%v: %d events", d.disk, len(events))
		}
		return err
	})
	d.do("Watch", func() error {
		for _, err := range h.Watch(ctx, d.f.id("tells"), 0) {
			return err
		}
		return errors.New("no event")
	})
	d.do("Objects", func() error {
		all, err := h.Objects(ctx, "thing", object.ObjectsOptions{Limit: 100})
		if err == nil && len(all) < 4 {
			d.t.Errorf("%v: %d objects", d.disk, len(all))
		}
		return err
	})
	for _, name := range []string{"data", "plain", "none"} {
		d.do("Inspect", func() error { _, err := h.Inspect(ctx, d.f.id(name)); return err })
	}
	d.do("Delete of what is not there", func() error { return h.Delete(ctx, d.f.id("none")) })
}

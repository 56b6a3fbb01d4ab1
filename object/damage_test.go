package object_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves S9: a row of the runtime that is cut short is an error of each look that reads
// it, or of Open, and never another answer.
func TestDamagedRowsOfTheRuntime(t *testing.T) {
	ctx := context.Background()
	type look func(f *fixture) error
	inspect := func(name string) look {
		return func(f *fixture) error { _, err := f.host.Inspect(ctx, f.id(name)); return err }
	}
	turn := func(name string, fn func(ctx context.Context, st *object.State) error) look {
		return func(f *fixture) error {
			_, err := f.call(name, func(th *thing, ctx context.Context) (any, error) { return nil, fn(ctx, th.st) })
			return err
		}
	}
	objects := func(f *fixture) error {
		_, err := f.host.Objects(ctx, "thing", object.ObjectsOptions{Limit: 10})
		return err
	}
	var letter uint64
	for _, c := range []struct {
		name  string
		is    func(key []byte) bool
		looks map[string]look // nil: Open fails
	}{
		{"header", func(k []byte) bool { return k[2] == 1 }, map[string]look{
			"a call": turn("alarmed", func(context.Context, *object.State) error { return nil }), "Inspect": inspect("alarmed"), "Objects": objects,
			"Delete": func(f *fixture) error { return f.host.Delete(ctx, f.id("alarmed")) },
		}},
		{"alarm", func(k []byte) bool { return k[2] == 2 && len(k) == 12 && k[11] == 1 }, map[string]look{
			"Inspect": inspect("alarmed"), "Objects": objects,
			"Alarm":       turn("alarmed", func(ctx context.Context, st *object.State) error { _, _, err := st.Alarm(ctx); return err }),
			"DeleteAlarm": turn("alarmed", func(ctx context.Context, st *object.State) error { return st.DeleteAlarm(ctx) }),
			"AlarmFailures": turn("alarmed", func(ctx context.Context, st *object.State) error {
				_, err := st.Driver().AlarmFailures(ctx)
				return err
			}),
			"a turn that writes": turn("alarmed", func(ctx context.Context, st *object.State) error { return st.Storage().PutBytes(ctx, "k", nil) }),
			"Delete":             func(f *fixture) error { return f.host.Delete(ctx, f.id("alarmed")) },
		}},
		{"open mark", func(k []byte) bool { return k[2] == 4 }, nil},
		{"event", func(k []byte) bool { return k[2] == 6 }, map[string]look{
			"Events": func(f *fixture) error { _, err := f.host.Events(ctx, f.id("tells"), 0, 10); return err },
			"Watch": func(f *fixture) error {
				for _, err := range f.host.Watch(ctx, f.id("tells"), 0) {
					return err
				}
				return nil
			},
		}},
		{"dead letter", func(k []byte) bool { return k[2] == 7 }, map[string]look{
			"DeadLetters": func(f *fixture) error {
				_, err := lettersOf(f.host.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage}))
				return err
			},
			"Inspect":           inspect("dead"),
			"ReplayIfUnarmed":   func(f *fixture) error { _, err := f.host.ReplayIfUnarmed(ctx, f.id("dead"), letter); return err },
			"ReplayDeadLetter":  func(f *fixture) error { return f.host.ReplayDeadLetter(ctx, f.id("dead"), letter) },
			"DiscardDeadLetter": func(f *fixture) error { return f.host.DiscardDeadLetter(ctx, f.id("dead"), letter) },
		}},
		{"flight", func(k []byte) bool { return bytes.Contains(k, []byte("flight/")) }, nil},
	} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t)
			f.handleAlarm(func(th *thing, ctx context.Context, _ object.AlarmInfo) error {
				if th.st.Name() == "hangs" {
					<-ctx.Done()
				}
				return object.Permanent(errors.New("boom"))
			})
			f.open()
			f.must("alarmed", setAlarm(time.Hour))
			if c.name == "dead letter" {
				f.must("dead", setAlarm(time.Second))
			}
			if c.name == "flight" {
				f.must("hangs", setAlarm(time.Second))
			}
			f.must("tells", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Emit(ctx, "hello", 1) })
			if c.name == "open mark" {
				f.must("open", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().OpenExecution(ctx, nil) })
			}
			pass(10 * time.Second)
			if all, err := lettersOf(f.host.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage})); err == nil && len(all) > 0 {
				letter = all[0].Seq
			}
			f.crash()
			if !cutShort(t, f.mem, c.is) {
				t.Fatalf("there is no %s", c.name)
			}
			if c.looks == nil {
				_, err := object.Open(object.Options{Storage: storage.Options{Engine: f.mem, Shards: 2}, Logger: f.options.Logger}, f.class)
				if !errors.Is(err, storage.ErrCorrupt) {
					t.Errorf("a damaged %s: Open says %v", c.name, err)
				}
				return
			}
			damaged := f.mem
			for name, look := range c.looks {
				f.mem = damaged.Crash(1 << 30) // keeps the damaged rows
				f.open()
				if err := look(f); err == nil || c.name != "event" && !errors.Is(err, storage.ErrCorrupt) && !errors.Is(err, alarm.ErrCorrupt) {
					t.Errorf("a damaged %s: %s says %v", c.name, name, err)
				}
				f.host.Shutdown(ended())
			}
		})
	}
}

// cutShort leaves one byte of the value of the first row for which is reports true.
func cutShort(t *testing.T, mem *memstore.Store, is func(key []byte) bool) bool {
	t.Helper()
	it, err := mem.NewIter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			t.Fatal(err)
		}
		if len(it.Key()) > 3 && len(value) > 1 && is(it.Key()) {
			var b storage.Batch
			b.Set(it.Key(), value[:1])
			if err := mem.Apply(b.Repr()); err != nil {
				t.Fatal(err)
			}
			return true
		}
	}
	return false
}

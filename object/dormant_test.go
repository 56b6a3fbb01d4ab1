package object_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// sleeper counts all that a host does by itself.
type sleeper struct {
	fired, came, opened, ran, built *atomic.Int32
	st                              *object.State
}

func (s *sleeper) Alarm(context.Context, object.AlarmInfo) error { s.fired.Add(1); return nil }

// adopted makes a dormant copy of a store in another directory.
func adopted(t *testing.T, s *storage.Store, o storage.Options, to string) {
	t.Helper()
	if err := s.Checkpoint(context.Background(), to); err != nil {
		t.Fatal(err)
	}
	d := o.Pebble.Dir(to)
	text, err := d.Read(storage.FormatFile)
	if err == nil {
		err = d.FS.Remove(d.Join(storage.FormatFile))
	}
	if o.Dir = to; err == nil {
		err = storage.Adopt(o, text)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A dormant store has its rows and takes calls, but no alarm fires, no message is delivered, nothing is
// recovered or expires and no routine starts, for hours, over two hosts of which one is killed; neither
// what its source has left nor what is stored meanwhile. After Wake each of them comes, once.
//
// Proves O26.
func TestDormantStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var fired, came, opened, ran, built atomic.Int32
		class := object.Define("sleeper", func(_ context.Context, st *object.State) (*sleeper, error) {
			built.Add(1)
			return &sleeper{&fired, &came, &opened, &ran, &built, st}, nil
		})
		class.AtOpen(func(context.Context, *object.Host, *slog.Logger) { opened.Add(1) })
		take := object.Handle(class, "take", func(*sleeper, context.Context, int) (int, error) { return int(came.Add(1)), nil })
		store := object.Handle(class, "store", func(s *sleeper, ctx context.Context, to string) (int, error) {
			value, ok, err := s.st.Storage().Get(ctx, "n")
			n := 0
			if ok {
				err = json.Unmarshal(value, &n)
			}
			return n + 1, errors.Join(err,
				s.st.Storage().Put(ctx, "n", n+1),
				s.st.SetAlarm(ctx, s.st.Now().Add(time.Hour)),
				s.st.Emit(ctx, "stored", n),
				take.Send(ctx, s.st, to, 1, object.After(time.Hour)),
			)
		})
		post := object.Handle(class, "post", func(s *sleeper, ctx context.Context, to string) (int, error) {
			return 0, take.Send(ctx, s.st, to, 1)
		})
		work := object.Handle(class, "work", func(s *sleeper, ctx context.Context, _ int) (int, error) {
			return 0, s.st.Go(ctx, "work", func(context.Context) { ran.Add(1) })
		})
		run := object.Handle(class, "run", func(s *sleeper, ctx context.Context, _ int) (int, error) {
			return 0, s.st.Driver().OpenExecution(ctx, nil)
		})
		root := t.TempDir()
		o := object.Options{
			Dir: filepath.Join(root, "source"), Logger: slog.New(slog.DiscardHandler), EventRetention: time.Hour, IdleAfter: time.Minute,
			Storage: storage.Options{Shards: 2, MinFreeBytes: -1, Pebble: pebblestore.Options{CacheBytes: 1 << 20}},
		}
		open := func() *object.Host {
			h, err := object.Open(o, class)
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		end := func(h *object.Host) {
			if err := h.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		}
		must := func(_ int, err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}
		h := open()
		must(store.Call(t.Context(), h, "a", "b"))
		must(run.Call(t.Context(), h, "c", 0))
		if h.Store().Dormant() {
			t.Error("the source is dormant")
		}
		adopted(t, h.Store(), o.Storage, filepath.Join(root, "copy"))
		end(h)
		pass(time.Minute) // so that the host of the source has nothing under way
		fired.Store(0)
		came.Store(0)
		opened.Store(0)
		built.Store(0)

		o.Dir = filepath.Join(root, "copy")
		quiet := func(doing string) {
			t.Helper()
			if fired.Load() != 0 || came.Load() != 0 || opened.Load() != 0 || ran.Load() != 0 {
				end(h)
				t.Fatalf("%s: %d alarms, %d messages, %d functions of AtOpen, %d routines", doing, fired.Load(), came.Load(), opened.Load(), ran.Load())
			}
		}
		for _, kill := range []bool{false, true} {
			h = open()
			if !h.Store().Dormant() {
				t.Fatal("the copy is awake")
			}
			pass(2 * time.Hour)
			quiet("the host alone")
			if built.Load() != 0 {
				t.Errorf("%d objects were activated", built.Load())
			}
			must(store.Call(t.Context(), h, "d", "e"))
			must(post.Call(t.Context(), h, "d", "e"))
			if _, err := work.Call(t.Context(), h, "d", 0); !errors.Is(err, object.ErrDormant) {
				t.Errorf("work: %v", err)
			}
			h.RecheckAlarms()
			pass(2 * time.Hour)
			quiet("what was stored meanwhile")
			if in, err := h.Inspect(context.Background(), class.ID("a")); err != nil || len(in.Events) != 1 {
				t.Errorf("events of the source: %v, %v", in.Events, err)
			}
			if kill {
				_ = h.Store().Abandon()
				_ = h.Shutdown(ended())
			} else {
				end(h)
			}
			built.Store(0)
		}

		if err := storage.Wake(storage.Options{Dir: o.Dir}); err != nil {
			t.Fatal(err)
		}
		h = open()
		defer end(h)
		pass(time.Hour)
		// The alarms of a and d; the messages with a delay to b and twice to e, and two without.
		if fired.Load() != 2 || came.Load() != 5 || opened.Load() != 1 || built.Load() < 4 {
			t.Errorf("awake: %d alarms, %d messages, %d functions of AtOpen, %d objects", fired.Load(), came.Load(), opened.Load(), built.Load())
		}
		if n, err := store.Call(t.Context(), h, "d", "e"); err != nil || n != 3 {
			t.Errorf("d has %d, %v", n, err)
		}
		must(work.Call(t.Context(), h, "d", 0))
	})
}

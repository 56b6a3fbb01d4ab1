package object_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// fromOutside are the verbs of a host that concern an object, or a class.
var fromOutside = map[string]func(ctx context.Context, f *fixture, id storage.ID) error{
	"Call": func(ctx context.Context, f *fixture, id storage.ID) error {
		_, err := f.do.Call(ctx, f.host, id.Name, nothing)
		return err
	},
	"CallBytes": func(ctx context.Context, f *fixture, id storage.ID) error {
		_, err := f.host.CallBytes(ctx, id.Class, id.Name, "count", []byte("1"))
		return err
	},
	"Objects": func(ctx context.Context, f *fixture, id storage.ID) error {
		_, err := f.host.Objects(ctx, id.Class, object.ObjectsOptions{After: id.Name, Limit: 10})
		return err
	},
	"StoredClasses": func(ctx context.Context, f *fixture, _ storage.ID) error {
		_, err := f.host.StoredClasses(ctx)
		return err
	},
	"Keys": func(ctx context.Context, f *fixture, id storage.ID) error {
		_, err := f.host.Keys(ctx, id, object.KeysOptions{})
		return err
	},
	"DeadLetter": func(ctx context.Context, f *fixture, id storage.ID) error {
		_, err := f.host.DeadLetter(ctx, id, 1)
		return err
	},
	"Inspect": func(ctx context.Context, f *fixture, id storage.ID) error {
		_, err := f.host.Inspect(ctx, id)
		return err
	},
	"Events": func(ctx context.Context, f *fixture, id storage.ID) error {
		_, err := f.host.Events(ctx, id, 0, 10)
		return err
	},
	"Watch": func(ctx context.Context, f *fixture, id storage.ID) error {
		for _, err := range f.host.Watch(ctx, id, 0) {
			return err
		}
		return errors.New("no event")
	},
	"DeadLetters": func(ctx context.Context, f *fixture, _ storage.ID) error {
		_, err := lettersOf(f.host.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage}))
		return err
	},
	"ReplayDeadLetter": func(ctx context.Context, f *fixture, id storage.ID) error { return f.host.ReplayDeadLetter(ctx, id, 1) },
	"DiscardDeadLetter": func(ctx context.Context, f *fixture, id storage.ID) error {
		return f.host.DiscardDeadLetter(ctx, id, 1)
	},
	"Wake":   func(ctx context.Context, f *fixture, id storage.ID) error { return f.host.Wake(ctx, id) },
	"Delete": func(ctx context.Context, f *fixture, id storage.ID) error { return f.host.Delete(ctx, id) },
	"Parked": func(_ context.Context, f *fixture, _ storage.ID) error { _, err := f.host.Parked(); return err },
}

// withParked opens a host with a thing, and with an object of a class that it does not
// know. Both are called a, and have a key, an alarm and an event.
func withParked(t *testing.T) (f *fixture, parked storage.ID) {
	f = newFixture(t)
	object.Handle(f.class, "count", func(_ *thing, _ context.Context, n int) (int, error) { return n, nil })
	old := object.Define("old", func(_ context.Context, st *object.State) (*thing, error) { return &thing{st: st, fix: f}, nil })
	do := object.Handle(old, "do", func(th *thing, ctx context.Context, fn action) (any, error) { return fn(th, ctx) })
	full := func(th *thing, ctx context.Context) (any, error) {
		return nil, errors.Join(th.st.Storage().PutBytes(ctx, "k", []byte("v")), th.st.SetAlarm(ctx, th.st.Now().Add(time.Hour)), th.st.Emit(ctx, "e", 1))
	}
	f.open(old)
	if _, err := do.Call(context.Background(), f.host, "a", full); err != nil {
		t.Fatal(err)
	}
	f.must("a", full)
	f.close()
	return f.open(), old.ID("a")
}

// idle fails the test if the host counts anything that is under way.
func (f *fixture) idle(after string) {
	f.t.Helper()
	synctest.Wait()
	wantValues(f.t.(*testing.T), f, map[string]float64{"holdfast_busy": 0, "holdfast_calls_waiting": 0, "holdfast_alarms_in_flight": 0})
	if f.t.Failed() {
		f.t.Fatalf("something is under way after %s", after)
	}
}

// Proves O14, O15: each verb from outside answers for objects of classes that are
// registered and that are not, and leaves nothing under way, also when it is refused.
func TestVerbsFromOutsideEnd(t *testing.T) {
	letters := map[string]bool{"DeadLetter": true, "ReplayDeadLetter": true, "DiscardDeadLetter": true}
	turns := map[string]bool{"CallBytes": true, "ReplayDeadLetter": true, "Wake": true}
	for name, verb := range fromOutside {
		bubble(t, func(t *testing.T) {
			f, parked := withParked(t)
			defer f.close()
			cause := errors.New("the client has gone")
			gone, cancel := context.WithCancelCause(context.Background())
			cancel(cause)
			for _, id := range []storage.ID{f.id("a"), parked} {
				var want error
				switch {
				case id == parked && turns[name]:
					want = object.ErrUnknownClass
				case letters[name]:
					want = object.ErrNoDeadLetter
				}
				if name != "Parked" {
					if err := verb(gone, f, id); !errors.Is(err, cause) && !errors.Is(err, object.ErrUnknownClass) {
						t.Errorf("O12: %s of %s with a context that has ended: %v", name, id, err)
					}
				}
				f.idle(name + " with a context that has ended")
				if err := verb(context.Background(), f, id); !errors.Is(err, want) || (err == nil) != (want == nil) {
					t.Errorf("O15: %s of %s: %v, want %v", name, id, err, want)
				}
				f.idle(name)
				if name == "DeadLetters" || name == "Parked" || name == "StoredClasses" { // they concern no object
					continue
				}
				bad := storage.ID{Class: id.Class, Name: "\xff"}
				if err := verb(context.Background(), f, bad); !errors.Is(err, object.ErrBadName) && (id != parked || !errors.Is(err, object.ErrUnknownClass)) {
					t.Errorf("O1: %s of a bad name: %v", name, err)
				}
				f.idle(name + " of a bad name")
			}
		})
	}
}

// Proves O14: each verb from outside is refused while the host shuts down, and after
// that, and none holds up the shutdown.
func TestVerbsFromOutsideWhileShuttingDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, parked := withParked(t)
		gate := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { f.must("slow", func(*thing, context.Context) (any, error) { <-gate; return nil, nil }) })
		synctest.Wait()
		over := false
		wg.Go(func() { f.close(); over = true })
		synctest.Wait()
		for _, when := range []string{"during", "after"} {
			if over != (when == "after") {
				t.Errorf("O14: the shutdown is over: %v", over)
			}
			for name, verb := range fromOutside {
				for _, id := range []storage.ID{f.id("a"), parked} {
					err := verb(context.Background(), f, id)
					if !errors.Is(err, object.ErrShutdown) && (id != parked || !errors.Is(err, object.ErrUnknownClass)) {
						t.Errorf("O14: %s of %s %s the shutdown: %v", name, id, when, err)
					}
				}
			}
			if when == "during" {
				close(gate)
				wg.Wait()
			}
		}
	})
}

// Proves O13: each verb from outside tells of a store that has failed.
func TestVerbsFromOutsideOfADeadStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, parked := withParked(t)
		f.end()
		f.mem = f.mem.Crash(0)
		d := f.slow()
		f.open()
		d.fail.Store(true)
		if _, err := f.call("b", put("k", "v")); !errors.Is(err, object.ErrStorage) {
			t.Fatal(err)
		}
		synctest.Wait()
		for name, verb := range fromOutside {
			for _, id := range []storage.ID{f.id("a"), parked} {
				err := verb(context.Background(), f, id)
				if !errors.Is(err, object.ErrStorage) && (id != parked || !errors.Is(err, object.ErrUnknownClass)) {
					t.Errorf("O13: %s of %s: %v", name, id, err)
				}
			}
		}
		_ = f.host.Shutdown(context.Background())
	})
}

// Proves O7, O15: a removal that needs no turn returns when it is durable, also when
// another call has removed the object a moment ago.
func TestParkedRemovalsWaitForTheDisk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, parked := withParked(t)
		f.end()
		f.mem = f.mem.Crash(0)
		d := f.slow()
		f.open()
		defer f.end()
		d.hold.Store(true)
		var done atomic.Int32
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if err := f.host.Delete(context.Background(), parked); err != nil {
					t.Error(err)
				}
				done.Add(1)
			})
			synctest.Wait()
		}
		if n := done.Load(); n != 0 {
			t.Errorf("O7: %d of two removals are acknowledged before the sync", n)
		}
		d.hold.Store(false)
		close(d.gate)
		wg.Wait()
	})
}

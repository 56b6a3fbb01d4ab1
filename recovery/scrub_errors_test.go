package recovery_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// spoil makes the alarm row of an object unreadable, and leaves its index entry.
func spoil(t *testing.T, store *storage.Store, id storage.ID) {
	o, err := store.Find(id)
	if err != nil || o.Number == 0 {
		t.Errorf("find %s: %v", id, err)
	}
	value, ok, err := store.Alarm(o)
	if err != nil || !ok {
		t.Errorf("%s has no alarm: %v", id, err)
	}
	row, err := alarm.DecodeRow(value)
	if err != nil {
		t.Errorf("%s is spoiled already: %v", id, err)
	}
	due := alarm.Nanos(row.Due)
	var b storage.Batch
	b.MoveAlarm(o, &due, &due, []byte{0}, alarm.AppendIndex(nil, row.Gen, id.Class, id.Name))
	if _, err := store.Commit(&b); err != nil {
		t.Error(err)
	}
}

var brokenID = storage.ID{Class: "ticker", Name: "broken"}

// unreadable fails the test unless the walk has looked at all objects and its finding for the
// object is that of a promise, which no repair has mended.
func unreadable(t *testing.T, seen recovery.Scrubbed, promise string) {
	t.Helper()
	i := slices.IndexFunc(seen.Findings, func(f recovery.Finding) bool { return f.ID == brokenID })
	if seen.Objects != len(objects) || i < 0 || seen.Findings[i].Promise != promise || seen.Findings[i].Repaired {
		t.Errorf("want a finding of %s for %s: %s", promise, brokenID, list(seen))
	}
}

// Proves S9, R6: an alarm that cannot be decoded is a finding that names the object, at the
// first look and at the second, and is not repaired by a wake-up. The walk goes on.
func TestScrubOfAnUnreadableAlarm(t *testing.T) {
	store, err := storage.Open(storage.Options{Engine: stored(t), Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	spoil(t, store, brokenID)
	o, err := store.Find(brokenID)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := recovery.Examine(store, o); err != nil || f == nil || f.Promise != "S9" || f.Suspect || !strings.Contains(f.Problem, "alarm row cannot be decoded") {
		t.Errorf("found %v, %v", f, err)
	}
	cold, err := recovery.ScrubStore(store)
	if err != nil {
		t.Error(err)
	}
	unreadable(t, cold, "S9")
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for look, promise := range map[string]string{"first": "S9", "second": "S9", "after the repair": "J5"} {
		t.Run(look, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store *storage.Store
				class := object.Define("ticker", func(_ context.Context, st *object.State) (*rawObject, error) {
					if look == "after the repair" {
						spoil(t, store, st.ID())
					}
					return &rawObject{st}, nil
				})
				h, err := object.Open(object.Options{Storage: storage.Options{Engine: stored(t), Shards: 1}}, class)
				if err != nil {
					t.Fatal(err)
				}
				store = h.Store()
				switch look {
				case "first":
					spoil(t, store, brokenID)
				case "second":
					time.AfterFunc(time.Second, func() { spoil(t, store, brokenID) })
				}
				seen, err := recovery.Scrub(context.Background(), h, recovery.ScrubOptions{Repair: true, Pause: time.Minute})
				if err != nil {
					t.Error(err)
				}
				unreadable(t, seen, promise)
				shut(t, h)
			})
		})
	}
}

// slow is an object with a call that takes until its channel is closed.
type slow struct {
	rawObject
	end chan struct{}
}

// Proves O14, R6: a walk of a host that is being shut down ends with ErrShutdown at the
// first object that it would wake, although the store can still be read.
func TestRepairWhileTheHostShutsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		class := object.Define("ticker", func(_ context.Context, st *object.State) (*slow, error) { return &slow{rawObject{st}, end}, nil })
		wait := object.Handle(class, "wait", func(s *slow, _ context.Context, _ int) (int, error) { <-s.end; return 0, nil })
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: stored(t), Shards: 1}}, class)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 2)
		go func() { _, err := wait.Call(context.Background(), h, "well", 0); ended <- err }()
		synctest.Wait()
		go func() { ended <- h.Shutdown(context.Background()) }()
		synctest.Wait()
		seen, err := recovery.Scrub(context.Background(), h, recovery.ScrubOptions{Repair: true})
		if !errors.Is(err, object.ErrShutdown) || seen.Objects != 1 {
			t.Errorf("%s, %v", list(seen), err)
		}
		close(end)
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	})
}

// deaf is a probe that loses the timers of alarms.
type deaf struct{}

func (deaf) At(seam.Point)           {}
func (deaf) Fault(p seam.Point) bool { return p.Name == seam.FaultTimerLost }

// Proves R6, A3: a timer does not ring, and its alarm does not fire. A walk with Repair
// makes it fire, and one without Repair leaves it.
func TestRepairRechecksAlarms(t *testing.T) {
	for _, repair := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			fired := 0
			class := object.Define("bell", func(_ context.Context, st *object.State) (*bell, error) { return &bell{st, &fired}, nil })
			arm := object.Handle(class, "arm", func(b *bell, ctx context.Context, d time.Duration) (int, error) {
				return 0, b.st.SetAlarm(ctx, b.st.Now().Add(d))
			})
			h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New(), Shards: 1}, Seams: seam.Seams{Probe: deaf{}}}, class)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := arm.Call(context.Background(), h, "a", time.Second); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			before := fired
			if _, err := recovery.Scrub(context.Background(), h, recovery.ScrubOptions{Repair: repair}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if before != 0 || (fired == 1) != repair {
				t.Errorf("repair %t: rung %d times before the walk, %d after it", repair, before, fired)
			}
			shut(t, h)
		})
	}
}

// bell is an object that counts its alarms.
type bell struct {
	st    *object.State
	fired *int
}

func (b *bell) Alarm(context.Context, object.AlarmInfo) error { *b.fired++; return nil }

// Proves R6: a table of the report has the last lines, up to the limit, and always the
// sums.
func TestReportLimit(t *testing.T) {
	lines := []object.Recovery{{Cause: "crash", Action: "one"}, {Cause: "crash", Action: "two"}, {Cause: "stale", Action: "three"}}
	for limit, want := range map[int]string{0: "one two three", 1: "three", 2: "two three", 3: "one two three", 4: "one two three"} {
		var b strings.Builder
		if err := (recovery.Report{Lines: lines, Total: 7}).Write(&b, limit); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range strings.Split(b.String(), "\n") {
			if fields := strings.Fields(line); len(fields) > 4 && fields[0] != "AT" && fields[0] != "recovered" {
				got = append(got, fields[len(fields)-1])
			}
		}
		if strings.Join(got, " ") != want || !strings.HasPrefix(b.String(), "AT ") || !strings.HasSuffix(b.String(), "recovered 7, crash 2, stale 1\n") {
			t.Errorf("limit %d:\n%s", limit, b.String())
		}
	}
	var b strings.Builder
	if err := (recovery.Report{}).Write(&b, 0); err != nil || b.String() != "recovered 0\n" {
		t.Errorf("an empty report: %q, %v", b.String(), err)
	}
}

package program

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// bell is an object with an alarm that does nothing.
type bell struct{ st *object.State }

func (b *bell) Alarm(context.Context, object.AlarmInfo) error { return nil }

func (b *bell) ring(ctx context.Context, after time.Duration) (struct{}, error) {
	return struct{}{}, b.st.SetAlarm(ctx, b.st.Now().Add(after))
}

// bells is a host over a disk in memory.
type bells struct {
	t    *testing.T
	disk *disk
	host *object.Host
	ring *object.Method[time.Duration, struct{}]
	fill *object.Method[int, struct{}]
}

func openBells(t *testing.T) *bells {
	b := &bells{t: t, disk: &disk{FS: sized{vfs.NewMem()}}}
	class := object.Define("bell", func(_ context.Context, st *object.State) (*bell, error) { return &bell{st}, nil })
	b.ring = object.Handle(class, "ring", (*bell).ring)
	ballast := object.Define("ballast", newBallast)
	b.fill = object.Handle(ballast, "fill", (*ballastObject).fill)
	o := object.Options{Storage: StoreOptions("store"), Logger: slog.New(slog.DiscardHandler)}
	o.Storage.Pebble.FS = b.disk
	var err error
	if b.host, err = object.Open(o, class, ballast); err != nil {
		t.Fatal(err)
	}
	return b
}

// sized is a disk of some size.
type sized struct{ vfs.FS }

func (sized) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: 100 * floorBytes}, nil
}

func (b *bells) must(_ struct{}, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// full lets the disk become full, and the store see it.
func (b *bells) full() {
	b.disk.full.Store(true)
	for {
		if _, err := b.fill.Call(context.Background(), b.host, "x", 1<<20); errors.Is(err, object.ErrNoSpace) {
			return
		} else if err != nil {
			b.t.Fatal(err)
		}
	}
}

// flights are the rows of the flights of alarms.
func (b *bells) flights() (n int) {
	err := b.host.Store().Metas("flight/", func(string, []byte) error { n++; return nil })
	if err != nil {
		b.t.Error(err)
	}
	return n
}

// A host on a full disk shuts down in order, though the row of the last flight of
// alarms can no longer be removed. Proves O14.
func TestShutdownOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openBells(t)
		b.must(b.ring.Call(context.Background(), b.host, "a", 0))
		synctest.Wait()
		if n := b.flights(); n != 1 {
			t.Fatalf("%d flights are stored, want the last one", n)
		}
		b.full()
		if err := b.host.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		o := StoreOptions("store")
		o.Pebble.FS, o.MinFreeBytes = b.disk, -1
		store, err := storage.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		if !store.Previous().Clean {
			t.Error("the store is not marked as closed in order")
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A flight that a full disk refuses does not make the host forget which flights are
// over: left behind, their rows would count as crashes of alarms that did not
// crash. Proves A8.
func TestFlightRefusedByAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openBells(t)
		b.must(b.ring.Call(context.Background(), b.host, "a", 0))
		b.must(b.ring.Call(context.Background(), b.host, "b", time.Second))
		synctest.Wait()
		b.full()
		time.Sleep(1500 * time.Millisecond) // the flight of b is refused
		b.disk.full.Store(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if in, err := b.host.Inspect(context.Background(), storage.ID{Class: "bell", Name: "b"}); err != nil || in.Alarm != nil {
			t.Fatalf("the alarm of b has not come: %+v, %v", in.Alarm, err)
		}
		if n := b.flights(); n != 1 {
			t.Errorf("%d flights are stored, want the last one", n)
		}
		if err := b.host.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

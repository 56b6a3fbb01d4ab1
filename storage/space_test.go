package storage

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// diskFS is a file system that says how much space is free. Pebble asks too, from
// goroutines of its own.
type diskFS struct {
	vfs.FS
	freeBytes atomic.Uint64
	unknown   atomic.Bool
}

// newDisk returns an empty file system with so many bytes free.
func newDisk(freeBytes uint64) *diskFS {
	d := &diskFS{FS: vfs.NewMem()}
	d.freeBytes.Store(freeBytes)
	return d
}

func (d *diskFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	if d.unknown.Load() {
		return vfs.DiskUsage{}, errors.New("unknown")
	}
	return vfs.DiskUsage{AvailBytes: d.freeBytes.Load()}, nil
}

// Below the floor commits are refused and change nothing; when space returns
// the same commit is accepted.
func TestNoSpaceRefusesUntilSpaceReturns(t *testing.T) {
	disk := newDisk(100 << 20)
	o := memOptions(disk)
	o.MinFreeBytes = 50 << 20
	o.Seams.Clock = &manualClock{now: time.Unix(1000, 0)} // it is not looked at by time
	s := open(t, o)
	defer checkAndClose(t, s)

	if _, err := s.Commit(metaBatch("fill", 1)); err != nil {
		t.Fatal(err)
	}
	disk.freeBytes.Store(49 << 20)
	accepted := 0
	for s.space.sinceLook.Load() < checkEveryBytes-(1<<20) { // the floor is not looked at each time
		if _, err := s.Commit(metaBatch("fill", 1<<20)); err != nil {
			t.Fatal(err)
		}
		accepted++
	}
	for range 3 {
		_, err := s.Commit(metaBatch("k", 1<<20))
		if !errors.Is(err, ErrNoSpace) || errors.Is(err, ErrStorage) {
			t.Fatalf("below the floor after %d commits: %v", accepted, err)
		}
		if text := err.Error(); !strings.Contains(text, "49 MiB are free and 50 MiB are needed") || strings.Contains(text, "\n") {
			t.Errorf("the error says %q", text)
		}
	}
	if _, ok, err := s.Meta("k"); ok || err != nil || s.Err() != nil {
		t.Errorf("the refused key is there: %v, %v, %v", ok, err, s.Err())
	}
	refused := s.RefusedAt()
	o.Seams.Clock.(*manualClock).now = time.Unix(2000, 0)
	if err := s.LookAtSpace(); !errors.Is(err, ErrNoSpace) || !s.RefusedAt().Equal(refused) {
		t.Errorf("a look says %v, and the last commit was refused at %v", err, s.RefusedAt())
	}
	if err := s.Space(); !errors.Is(err, ErrNoSpace) || s.RefusedAt().Equal(refused) {
		t.Errorf("a question for a change says %v, and the last commit was refused at %v", err, s.RefusedAt())
	}
	disk.freeBytes.Store(50 << 20)
	if err := s.LookAtSpace(); err != nil {
		t.Errorf("a look after space returned: %v", err)
	}
	if _, err := s.Commit(metaBatch("k", 1)); err != nil {
		t.Errorf("after space returned: %v", err)
	}
}

// A store that is closed for want of space is closed in order all the same.
func TestNoSpaceDoesNotMakeACloseACrash(t *testing.T) {
	disk := newDisk(100 << 20)
	o := memOptions(disk)
	o.MinFreeBytes = 50 << 20
	s := open(t, o)
	disk.freeBytes.Store(0)
	for {
		if _, err := s.Commit(metaBatch("k", 1<<20)); errors.Is(err, ErrNoSpace) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	checkAndClose(t, s)
	wantOpenError(t, o, ErrNoSpace, "store", "0 MiB are free")

	disk.freeBytes.Store(100 << 20)
	s = open(t, o)
	if !s.Previous().Clean {
		t.Error("the close counts as a crash")
	}
	checkAndClose(t, s)
}

// A file system that cannot tell its free space is not watched, from the start
// or from when it no longer can.
func TestSpaceIsNotWatchedWhereItIsUnknown(t *testing.T) {
	for _, atOpen := range []bool{true, false} {
		disk := newDisk(1 << 40)
		disk.unknown.Store(atOpen)
		s := open(t, memOptions(disk))
		disk.unknown.Store(true)
		disk.freeBytes.Store(0)
		for range 10 {
			if _, err := s.Commit(metaBatch("k", 1<<20)); err != nil {
				t.Errorf("unknown at open %v: %v", atOpen, err)
			}
		}
		checkAndClose(t, s)
	}
}

func TestNegativeFloorIsNone(t *testing.T) {
	o := memOptions(newDisk(0))
	o.MinFreeBytes = -1
	s := open(t, o)
	for range 10 {
		if _, err := s.Commit(metaBatch("k", 1<<20)); err != nil {
			t.Error(err)
		}
	}
	checkAndClose(t, s)
}

package storage

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// fullFS is a file system with a disk that can become full. From then on new files cannot
// be written. The present log can be, because its space is allocated ahead.
type fullFS struct {
	vfs.FS
	full atomic.Bool
}

func (f *fullFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	if err != nil || !f.full.Load() {
		return file, err
	}
	return noSpaceFile{file}, nil
}

type noSpaceFile struct{ vfs.File }

func (noSpaceFile) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// lines is a log that counts its lines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSuffix(l.text.String(), "\n"), "\n")
}

// A store that closes on a full disk closes in order: nothing is lost, the next
// opening is told so, and one line of the log tells of the disk.
//
// Case ST4. Proves O17.
func TestCloseOnAFullDisk(t *testing.T) {
	fsys, log := &fullFS{FS: vfs.NewMem()}, &lines{}
	o := memOptions(fsys)
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	s := open(t, o)
	commit(t, s, func(b *Batch) { b.SetMeta("user", []byte("kept")) })
	fsys.full.Store(true)
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if all := log.all(); len(all) != 1 || !strings.Contains(all[0], "level=WARN") || !strings.Contains(all[0], "disk is full") {
		t.Errorf("the log has %d lines:\n%s", len(all), strings.Join(all, "\n"))
	}
	fsys.full.Store(false)
	s = open(t, o)
	if v, ok, err := s.Meta("user"); string(v) != "kept" || !ok || err != nil || !s.Previous().Clean {
		t.Errorf("the next opening finds %q, %v, %v after %+v", v, ok, err, s.Previous())
	}
	checkAndClose(t, s)
}

// A store on a full disk logs the failures of Pebble's own work once, and ends with an
// error if they go on.
func TestWorkOnAFullDiskIsLoggedOnce(t *testing.T) {
	fsys, log := &fullFS{FS: vfs.NewMem()}, &lines{}
	o := memOptions(fsys)
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	s := open(t, o)
	defer s.Abandon()
	fsys.full.Store(true)
	go func() { _ = s.engine.(*pebblestore.Store).DB().Flush() }()
	<-s.Dead()
	if err := s.Err(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the store ended with %v", err)
	}
	if n := strings.Count(strings.Join(log.all(), "\n"), "background"); n != 1 {
		t.Errorf("%d lines tell of work in the background", n)
	}
}

// The free space is looked at by time too. So if other programs fill the disk, or free
// space on it, the first commit 100 ms later sees it.
//
// Case ST3. Proves O17.
func TestSpaceIsLookedAtByTime(t *testing.T) {
	disk, clock := newDisk(100<<20), &manualClock{now: time.Unix(1000, 0)}
	o := memOptions(disk)
	o.MinFreeBytes, o.Seams.Clock = 50<<20, clock
	s := open(t, o)
	defer checkAndClose(t, s)
	try := func() error { _, err := s.Commit(metaBatch("k", 1)); return err }
	if err := try(); err != nil {
		t.Fatal(err)
	}
	disk.freeBytes.Store(0)
	for _, step := range []struct {
		after time.Duration
		want  error
	}{
		{checkEvery - 1, nil}, {1, ErrNoSpace}, {0, ErrNoSpace},
	} {
		clock.now = clock.now.Add(step.after)
		if err := try(); !errors.Is(err, step.want) {
			t.Errorf("at %v: %v, want %v", clock.now, err, step.want)
		}
	}
	disk.freeBytes.Store(100 << 20)
	if err := try(); err != nil {
		t.Errorf("after space returned: %v", err)
	}
	disk.freeBytes.Store(0)
	clock.now = clock.now.Add(-time.Hour)
	if err := try(); !errors.Is(err, ErrNoSpace) {
		t.Errorf("after the clock was put back: %v", err)
	}
}

// The removal of expired rows heeds the floor by time too.
//
// Case ST3.
func TestExpireLooksAtSpaceByTime(t *testing.T) {
	disk, clock := newDisk(100<<20), &manualClock{now: time.Unix(1000, 0)}
	o := memOptions(disk)
	o.MinFreeBytes, o.Seams.Clock = 50<<20, clock
	s := open(t, o)
	defer checkAndClose(t, s)
	commit(t, s, func(b *Batch) { b.AddEvent(0, ID{"c", "n"}, 1, 5, nil) })
	disk.freeBytes.Store(0)
	clock.now = clock.now.Add(checkEvery)
	if _, _, _, err := s.Expire(0, 10, 100, nil); !errors.Is(err, ErrNoSpace) {
		t.Errorf("Expire: %v", err)
	}
	disk.freeBytes.Store(100 << 20)
	if done, _, _, err := s.Expire(0, 10, 100, nil); done != 2 || err != nil {
		t.Errorf("Expire removed %d, %v", done, err)
	}
}

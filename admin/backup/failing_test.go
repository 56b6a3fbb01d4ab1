package backup

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/holdfast-dev/holdfast/internal/testing/prove"
	"github.com/holdfast-dev/holdfast/storage"
)

// failingDisk fails one operation on one of its paths: a write if fault is that of a full disk, a read if it is that of a broken one. If
// it is that of a disk that is read-only now, each later write fails too. The disk counts once it is armed. The mutex guards ops and failed.
type failingDisk struct {
	at     int // the number of the operation, from 0
	fault  syscall.Errno
	paths  []string
	reader bool // the locks are those of a reader, which write nothing
	armed  atomic.Bool
	opened atomic.Bool // a database of Pebble in the directory copy

	mu     sync.Mutex
	ops    int
	failed []string // the paths
}

func (d *failingDisk) fails(op errorfs.Op) error {
	if !d.armed.Load() || !slices.ContainsFunc(d.paths, func(path string) bool { return strings.HasPrefix(op.Path, path) }) {
		return nil
	}
	kind := errorfs.OpIsWrite
	switch op.Kind {
	case errorfs.OpFileClose:
		return nil
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		if d.fault == syscall.EROFS {
			return nil // it has nothing to write
		}
	case errorfs.OpLock:
		d.opened.Store(d.opened.Load() || op.Path == "copy/LOCK")
		if d.reader {
			return nil
		}
	case errorfs.OpList:
		if d.opened.Load() && op.Path == "copy" {
			return nil // an opening of Pebble leaves a goroutine behind if its last list fails
		}
	}
	if d.fault == syscall.EIO {
		kind = errorfs.OpIsRead
	}
	if op.Kind.ReadOrWrite() != kind {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ops++; d.ops-1 != d.at && (d.fault != syscall.EROFS || d.ops <= d.at) {
		return nil
	}
	d.failed = append(d.failed, op.Path)
	if op.Kind == errorfs.OpFileSyncTo {
		return d.fault // which is without a path on Linux
	}
	return &fs.PathError{Op: "use", Path: op.Path, Err: d.fault}
}

// named reports whether an error is the fault of the disk, with a path that has failed.
func (d *failingDisk) named(err error) bool {
	return (errors.Is(err, d.fault) || errors.Is(err, ErrDamaged) && strings.Contains(err.Error(), d.fault.Error())) &&
		slices.ContainsFunc(d.failed, func(path string) bool { return strings.Contains(err.Error(), path) })
}

// failEach calls try with disks of which the first operation fails, and then later ones, prove.Stride apart, until none does. It returns about how
// many operations fail try if all are tried. The error must tell of the disk and name its path.
func failEach(t *testing.T, fault syscall.Errno, paths []string, try func(d *failingDisk, w *world) error) (failed int) {
	t.Helper()
	for at := 0; ; at += prove.Stride() {
		d := &failingDisk{at: at, fault: fault, paths: paths}
		w := newWorld(t, errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(d.fails)))
		w.commit(1)
		err := try(d, w)
		d.armed.Store(false)
		_ = w.store.Abandon()
		if err != nil {
			failed++
			if !d.named(err) {
				t.Errorf("%d: %v, and %q have failed", at, err, d.failed)
			}
		}
		if len(d.failed) == 0 || t.Failed() {
			t.Log(failed, "operations failed")
			return failed * prove.Stride()
		}
	}
}

// failBackup calls failEach with Create and Verify, in a new repository or beside a snapshot. An error of either is that of the backup
// alone: nothing is counted as made, what the repository had before is whole, the live store takes commits, and the next backup succeeds.
func failBackup(t *testing.T, fault syscall.Errno, second bool, paths ...string) (failed int) {
	t.Helper()
	return failEach(t, fault, paths, func(d *failingDisk, w *world) error {
		var before []Snapshot
		if second {
			before = append(before, w.verify(w.create().Name))
			w.commit(2)
		}
		w.clock.now.Add(int64(time.Minute))
		d.armed.Store(true)
		s, err := w.repo.Create(t.Context(), w.store)
		made := err == nil
		if made {
			s, err = w.repo.Verify(t.Context(), s.Name, nil)
		}
		d.armed.Store(false)
		w.commit(3)
		if err := w.store.Check(); err != nil {
			t.Error(err)
		}
		list, listed := w.repo.List()
		if errors.Is(listed, ErrNoRepository) && err != nil {
			listed = nil
		}
		added := list[min(len(before), len(list)):]
		switch {
		case listed != nil || !slices.Equal(list[:len(list)-len(added)], before):
			t.Errorf("%d: the list was %v, and is %v, %v", d.at, before, list, listed)
		case err == nil && (len(added) != 1 || added[0] != s || s.Verified.IsZero()):
			t.Errorf("%d: %v was made, and %v is listed", d.at, s, added)
		case err != nil && !made && len(added) > 0, err != nil && len(added) > 0 && !added[0].Verified.IsZero(), errors.Is(err, storage.ErrStorage):
			t.Errorf("%d: a backup failed with %v, and %v is listed", d.at, err, added)
		}
		for _, s := range before {
			w.verify(s.Name)
		}
		w.verify(w.create().Name)
		return err
	})
}

// Each write in the repository, or on the checkpoint, fails in turn, as on a disk that is full.
//
// Proves B3.
func TestFailingBackup(t *testing.T) {
	if n := failBackup(t, syscall.ENOSPC, false, "repo", "store.checkpoint"); n < 60 {
		t.Errorf("%d operations failed", n)
	}
}

// The disk becomes read-only before each write in turn.
//
// Proves B3.
func TestBackupOnADiskThatTurnsReadOnly(t *testing.T) {
	if n := failBackup(t, syscall.EROFS, true, "repo", "store.checkpoint"); n < 40 {
		t.Errorf("%d operations failed", n)
	}
}

// Each read of the repository, or of the checkpoint, fails in turn; those in a few files first, because that takes little time.
//
// Proves B3.
func TestFailingReadsOfABackup(t *testing.T) {
	if n := failBackup(t, syscall.EIO, true, "repo/"+snapshotsDir); n < 10 {
		t.Fatalf("%d operations failed", n)
	}
	if n := failBackup(t, syscall.EIO, false, "repo", "store.checkpoint"); n < 150 {
		t.Errorf("%d operations failed", n)
	}
}

// failRestore calls failEach with a way to restore. After an error the directory is empty, and the next restore into it
// succeeds. The repository is as it was.
func failRestore(t *testing.T, way way, fault syscall.Errno, paths ...string) (failed int) {
	t.Helper()
	return failEach(t, fault, paths, func(d *failingDisk, w *world) error {
		s := w.create()
		if way.verified {
			w.verify(s.Name)
		}
		blobs := tree(t, w.repo.dir(blobsDir))
		d.armed.Store(true)
		_, err := way.restore(w.repo, t.Context(), s.Name, "copy")
		d.armed.Store(false)
		if !maps.Equal(blobs, tree(t, w.repo.dir(blobsDir))) {
			t.Errorf("%d: the repository has changed", d.at)
		}
		if err != nil {
			to := w.o.Pebble.Dir("copy")
			if left, listed := to.List(); len(left) > 0 || listed != nil && !errors.Is(listed, fs.ErrNotExist) {
				t.Errorf("%d: left %v, %v", d.at, left, listed)
				return err
			}
			if _, err := w.repo.Restore(t.Context(), s.Name, "copy"); err != nil {
				t.Errorf("%d: the next restore: %v", d.at, err)
			}
		}
		if n := last(t, w.o, "copy"); n != 1 {
			t.Errorf("%d: the copy ends with %d", d.at, n)
		}
		return err
	})
}

// Each write of a restore to its directory fails in turn, as on a disk that is full. The error is that of the
// restore, the directory is left empty, and the next restore into it succeeds.
//
// Proves S17.
func TestFailingRestore(t *testing.T) {
	for name, way := range ways {
		if n := failRestore(t, way, syscall.ENOSPC, "copy"); n < 20 {
			t.Errorf("%s: %d operations failed", name, n)
		}
	}
}

// Each read of a restore, in the repository or in its directory, fails in turn; those in a few files first, because that takes little time.
//
// Proves S17.
func TestFailingReadsOfARestore(t *testing.T) {
	for name, way := range ways {
		least := 70
		if !way.verified {
			least = 150 // it reads the store that it has made, and all of it
		}
		if n := failRestore(t, way, syscall.EIO, "repo/"+snapshotsDir); n < 4 {
			t.Fatalf("%s: %d operations failed", name, n)
		}
		if n := failRestore(t, way, syscall.EIO, "copy", "repo"); n < least {
			t.Errorf("%s: %d operations failed", name, n)
		}
	}
}

// Each read of a store at rest, or of the repository, fails in turn. Nothing is counted as made, the store is as it was, and the next
// backup of it succeeds.
//
// Proves B3.
func TestFailingBackupOfADirectory(t *testing.T) {
	failed := failEach(t, syscall.EIO, []string{"repo", "store/"}, func(d *failingDisk, w *world) error {
		if err := w.store.Close(); err != nil {
			t.Fatal(err)
		}
		before := tree(t, w.o.Pebble.Dir("store"))
		d.armed.Store(true)
		_, err := w.repo.CreateFrom(t.Context(), "store")
		d.armed.Store(false)
		if list, listed := w.repo.List(); err != nil && (len(list) > 0 || listed != nil && !errors.Is(listed, ErrNoRepository)) {
			t.Errorf("%d: %v failed, and %v is listed, %v", d.at, err, list, listed)
		}
		if !maps.Equal(before, tree(t, w.o.Pebble.Dir("store"))) {
			t.Errorf("%d: the store has changed", d.at)
		}
		w.clock.now.Add(int64(time.Minute))
		s, next := w.repo.CreateFrom(t.Context(), "store")
		if next != nil {
			t.Fatal(next)
		}
		w.verify(s.Name)
		return err
	})
	if failed < 30 {
		t.Errorf("%d operations failed", failed)
	}
}

// Each operation of a backup on the files of the live store itself fails in turn, a read or a write. A backup that is made holds all that was
// acknowledged, and one that fails leaves no snapshot. The store goes on, or is dead and acknowledges nothing more (S9). In both cases its
// directory has all acknowledged commits, and the next backup of it succeeds.
//
// Proves B3. Proves S9.
func TestBackupOfAFailingStore(t *testing.T) {
	for fault, least := range map[syscall.Errno]int{syscall.ENOSPC: 2, syscall.EIO: 10} {
		failed := 0
		for at := 0; ; at++ {
			d := &failingDisk{at: at, fault: fault, paths: []string{"store/"}}
			w := newWorld(t, errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(d.fails)))
			w.commit(1)
			d.armed.Store(true)
			s, err := w.repo.Create(t.Context(), w.store)
			d.armed.Store(false)
			if dead := w.store.Check() != nil; dead != errors.Is(err, storage.ErrStorage) || err != nil && !d.named(err) {
				t.Errorf("%v at %d: %q has failed, the store is dead: %v, and the backup fails with %v", fault, at, d.failed, dead, err)
			}
			switch list, listed := w.repo.List(); {
			case err == nil:
				w.verify(s.Name)
			case len(list) > 0 || listed != nil && !errors.Is(listed, ErrNoRepository):
				t.Errorf("%v at %d: %v failed, and %v is listed, %v", fault, at, err, list, listed)
			}
			acknowledged := 1
			if err := commitTo(w.store, 2); err == nil {
				acknowledged = 2
			} else if !errors.Is(err, storage.ErrStorage) {
				t.Errorf("%v at %d: the store refuses a commit with %v", fault, at, err)
			}
			_ = w.store.Abandon()
			if n := last(t, w.o, "store"); n < acknowledged {
				t.Errorf("%v at %d: the store ends with %d of %d", fault, at, n, acknowledged)
			}
			w.clock.now.Add(int64(time.Minute))
			next, err := w.repo.CreateFrom(t.Context(), "store")
			if err != nil {
				t.Fatal(err)
			}
			w.verify(next.Name)
			if len(d.failed) == 0 {
				break
			}
			failed++
		}
		if failed < least {
			t.Errorf("%v: %d operations failed", fault, failed)
		}
	}
}

// A repository on a disk that is read-only takes no change: each is refused by the name of a file, and every byte stays. It can still
// be listed and restored from. A restore into a directory on such a disk is refused too.
//
// Proves B1. Proves B3.
func TestReadOnlyRepository(t *testing.T) {
	d := &failingDisk{fault: syscall.EROFS}
	w := newWorld(t, errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(d.fails)))
	w.commit(1)
	s := w.verify(w.create().Name)
	w.commit(2)
	before := tree(t, w.repo.root)
	refused := func(what string, err error, path string) {
		t.Helper()
		if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want the name of %s", what, err, path)
		}
		if !maps.Equal(before, tree(t, w.repo.root)) {
			t.Errorf("%s: the repository has changed", what)
		}
		w.commit(3)
	}
	for _, c := range []struct {
		paths []string
		name  string // of a file that is refused
	}{{[]string{"repo"}, "repo/LOCK"}, {[]string{"store.checkpoint"}, "store.checkpoint"}} {
		d.paths = c.paths
		d.armed.Store(true)
		_, err := w.repo.Create(t.Context(), w.store)
		refused("create", err, c.name)
		d.armed.Store(false)
	}
	d.paths = []string{"repo"}
	d.armed.Store(true)
	refused("remove", w.repo.Remove(s.Name), "repo/LOCK")
	_, _, err := w.repo.Clean(Keep{})
	refused("clean", err, "repo/LOCK")
	d.armed.Store(false)
	d.reader = true
	d.armed.Store(true)
	_, err = w.repo.Verify(t.Context(), s.Name, nil)
	refused("verify", err, "repo/"+scratchDir)
	if list, err := w.repo.List(); err != nil || !slices.Equal(list, []Snapshot{s}) {
		t.Errorf("%v, %v, want %v", list, err, s)
	}
	if _, err := w.repo.Restore(t.Context(), "", "copy"); err != nil || last(t, w.o, "copy") != 1 {
		t.Errorf("a restore: %v", err)
	}
	d.armed.Store(false)
	d.paths = append(d.paths, "other")
	d.armed.Store(true)
	_, err = w.repo.Restore(t.Context(), "", "other")
	refused("restore", err, "other")
	d.armed.Store(false)
	w.verify(w.create().Name)
}

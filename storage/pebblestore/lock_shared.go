package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// LockShared locks the directory for a reader, beside other readers. While one has it, Lock
// fails with ErrLocked, because a writer removes files that the reader needs. It needs no
// permission to write and makes no file: a directory without a lock file is open in no
// process, so there is nothing to lock. It does not wait. On a file system other than that
// of the operating system readers exclude one another too.
func (d Dir) LockShared() (io.Closer, error) {
	if d.FS != vfs.Default {
		if _, err := d.FS.Stat(d.Join(lockFile)); errors.Is(err, fs.ErrNotExist) {
			return unlocked{}, nil
		}
		return d.Lock()
	}
	held.Lock()
	defer held.Unlock()
	h := held.dirs[d.Path]
	switch {
	case h == nil:
		f, err := os.Open(filepath.Join(d.Path, lockFile))
		if errors.Is(err, fs.ErrNotExist) {
			return unlocked{}, nil
		}
		if err == nil {
			err = lockForReading(f)
		}
		if err != nil {
			return nil, d.notShared(f, err)
		}
		h = &holding{file: f}
		d.hold(h)
	case h.readers == 0:
		return nil, d.inUse(true)
	}
	h.readers++
	return &sharedLock{d, h}, nil
}

// notShared closes the lock file and returns the error of a lock that was not taken.
func (d Dir) notShared(f *os.File, err error) error {
	if f != nil {
		_ = f.Close() // nothing was written
	}
	if errors.Is(err, errLockHeld) {
		return d.inUse(false)
	}
	return fmt.Errorf("storage: lock %s: %w", d.Path, err)
}

// errLockHeld is the error of lockForReading if another process has the lock.
var errLockHeld = errors.New("lock is held")

// sharedLock is the lock of one reader.
type sharedLock struct {
	dir Dir
	h   *holding
}

// Close gives the lock up when the last reader of this process does. It is called once.
func (l *sharedLock) Close() error {
	held.Lock()
	defer held.Unlock()
	if l.h.readers--; l.h.readers > 0 {
		return nil
	}
	delete(held.dirs, l.dir.Path)
	return l.h.file.Close()
}

// unlocked is the lock of a reader where there is no lock file.
type unlocked struct{}

// Close does nothing.
func (unlocked) Close() error { return nil }

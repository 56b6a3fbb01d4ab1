package pebblestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrLocked is wrapped by the error of Dir.Lock and Dir.LockShared when another process,
// or another store of this one, has the lock. The error names the process.
var ErrLocked = errors.New("storage: directory is in use")

// Lock is the lock of a directory, which Close gives up.
type Lock struct {
	pebble *pebble.Lock
	close  func() error
}

// Close gives the lock up. It is called once, after the store that used the lock is closed.
func (l *Lock) Close() error { return l.close() }

// lockFile is the name of the file that is locked.
const lockFile = "LOCK"

// held is the locks of this process on the file system of the operating system. A process
// may not open a lock file that it has locked: closing any descriptor of the file gives the
// lock up. So each look at a directory begins here.
var held struct {
	sync.Mutex
	dirs map[string]*holding
}

// holding is the lock of one directory: of one writer, or of one or more readers, which
// share one descriptor.
type holding struct {
	readers int      // 0: a writer has it
	file    *os.File // of the readers
}

// Lock locks the directory for this process. It does not wait.
func (d Dir) Lock() (*Lock, error) {
	if d.FS != vfs.Default {
		lock, err := d.lockPebble()
		if err != nil {
			return nil, err
		}
		return &Lock{lock, lock.Close}, nil
	}
	held.Lock()
	defer held.Unlock()
	if held.dirs[d.Path] != nil {
		return nil, d.inUse(true)
	}
	lock, err := d.lockPebble()
	if err != nil {
		return nil, err
	}
	d.hold(&holding{})
	return &Lock{lock, func() error {
		held.Lock()
		defer held.Unlock()
		delete(held.dirs, d.Path)
		return lock.Close()
	}}, nil
}

// hold enters a lock of this process. The caller holds the mutex.
func (d Dir) hold(h *holding) {
	if held.dirs == nil {
		held.dirs = make(map[string]*holding)
	}
	held.dirs[d.Path] = h
}

// lockPebble takes the lock as Pebble does.
func (d Dir) lockPebble() (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(d.Path, d.FS)
	if err == nil {
		return lock, nil
	}
	self := strings.Contains(err.Error(), "current process")
	if self || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) && isWritable(d.Path) {
		return nil, d.inUse(self)
	}
	return nil, fmt.Errorf("storage: lock %s: %w", d.Path, err)
}

// inUse is ErrLocked with the process that has the lock.
func (d Dir) inUse(self bool) error {
	return fmt.Errorf("%w: %s is open in %s: stop it, or use another directory", ErrLocked, d.Path, holder(d.Path, self))
}

// isWritable tells a lock that is held from a directory without permission,
// because some systems report both alike.
func isWritable(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// holder names the process that holds the lock of dir.
func holder(dir string, self bool) string {
	if self {
		return fmt.Sprintf("this process (pid %d)", os.Getpid())
	}
	if pid := lockHolder(filepath.Join(dir, lockFile)); pid > 0 {
		return fmt.Sprintf("the process with pid %d", pid)
	}
	return "another process"
}

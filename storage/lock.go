package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// lockPoll is how often a directory that is locked is tried again.
const lockPoll = 50 * time.Millisecond

// awaitLock locks the directory, and waits up to o.WaitForLock while another store
// is open on it.
func awaitLock(o Options) (*pebble.Lock, error) {
	began := o.Seams.Clock.Now()
	lock, err := lockDir(o)
	if o.WaitForLock == 0 || !errors.Is(err, ErrLocked) {
		return lock, err
	}
	o.info("store waits for its directory", "dir", o.Dir, "limit", o.WaitForLock, "cause", err.Error())
	for errors.Is(err, ErrLocked) {
		left := o.WaitForLock - o.Seams.Clock.Now().Sub(began)
		if left <= 0 {
			return nil, fmt.Errorf("%w (waited %v)", err, o.WaitForLock)
		}
		// The context never ends, so the sleep does not fail.
		_ = o.Seams.Sleep(context.Background(), min(left, lockPoll))
		lock, err = lockDir(o)
	}
	if err == nil {
		o.info("store has its directory", "dir", o.Dir, "waited", o.Seams.Clock.Now().Sub(began))
	}
	return lock, err
}

// info writes a line to the log, if there is one.
func (o Options) info(text string, args ...any) {
	if o.Log != nil {
		o.Log.Info(text, args...)
	}
}

func lockDir(o Options) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(o.Dir, o.Pebble.FS)
	if err == nil {
		return lock, nil
	}
	held := strings.Contains(err.Error(), "current process")
	if held || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) && isWritable(o.Dir) {
		return nil, fmt.Errorf("%w: %s is open in %s: stop it, or use another directory", ErrLocked, o.Dir, holder(o.Dir, held))
	}
	return nil, fmt.Errorf("storage: lock %s: %w", o.Dir, err)
}

// isWritable tells a lock that is held from a directory without permission,
// which some systems report alike.
func isWritable(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_WRONLY, 0)
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
	if pid := lockHolder(filepath.Join(dir, "LOCK")); pid > 0 {
		return fmt.Sprintf("the process with pid %d", pid)
	}
	return "another process"
}

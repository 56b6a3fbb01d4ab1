package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// lockPoll is how often a directory that is locked is tried again.
const lockPoll = 50 * time.Millisecond

// awaitLock locks the directory by calling take, which is Lock or LockShared of it, and waits
// up to o.WaitForLock while another store is
// open on it, for example that of the old process in a deploy. It logs the beginning
// and the end of the wait. A wait that is too long ends with ErrLocked.
func awaitLock[L io.Closer](o Options, dir pebblestore.Dir, take func() (L, error)) (L, error) {
	began := o.Seams.Clock.Now()
	lock, err := take()
	if o.WaitForLock == 0 || !errors.Is(err, ErrLocked) {
		return lock, err
	}
	o.info("store waits for its directory", "dir", dir.Path, "limit", o.WaitForLock, "cause", err.Error())
	for errors.Is(err, ErrLocked) {
		left := o.WaitForLock - o.Seams.Clock.Now().Sub(began)
		if left <= 0 {
			return lock, fmt.Errorf("%w (waited %v)", err, o.WaitForLock)
		}
		// The context never ends, so the sleep does not fail.
		_ = o.Seams.Sleep(context.Background(), min(left, lockPoll))
		lock, err = take()
	}
	if err == nil {
		o.info("store has its directory", "dir", dir.Path, "waited", o.Seams.Clock.Now().Sub(began))
	}
	return lock, err
}

// info writes a line to the log, if there is one.
func (o Options) info(text string, args ...any) {
	if o.Log != nil {
		o.Log.Info(text, args...)
	}
}

// LockDir locks a directory as Open does, or as OpenReadOnly does if shared is true, for a
// directory that belongs to stores without being one: a repository of backups. The lock ends with
// Close. It uses the file system and WaitForLock of o.
func LockDir(o Options, path string, shared bool) (io.Closer, error) {
	o.Seams = o.Seams.WithDefaults()
	dir := o.Pebble.Dir(path)
	if shared {
		return awaitLock(o, dir, dir.LockShared)
	}
	return awaitLock(o, dir, func() (io.Closer, error) { return dir.Lock() })
}

package auth

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// usesEvery is the least time between two writes of last uses. A file of tokens is small, but
// each write waits for the disk.
const usesEvery = time.Minute

// uses stores when tokens were last used. A request sets a number in memory. The first
// use after a write sets a timer, and the timer's task writes the file a usesEvery later: so no
// request waits for the file.
type uses struct {
	file  *TokenFile
	dirty atomic.Bool // a use is not stored yet, and the timer is set

	mu     sync.Mutex // guards the fields below; not held while the file is written
	timer  seam.Timer
	rung   chan struct{} // closed when the function of the timer has ended
	closed bool
	told   bool // the log has a line that the file cannot be written

	writing sync.Mutex // held by the goroutine that writes
}

// note says that a token was used.
func (u *uses) note(k *known, now time.Time) {
	if seconds := now.Unix(); k.used.Load() < seconds {
		k.used.Store(seconds)
	}
	if !u.dirty.Load() && u.dirty.CompareAndSwap(false, true) {
		u.arm()
	}
}

// arm sets the timer.
func (u *uses) arm() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return
	}
	rung := make(chan struct{})
	u.rung = rung
	u.timer = u.file.o.Seams.Clock.AfterFunc(usesEvery, func() {
		defer close(rung)
		u.rang()
	})
}

// rang stores the last uses, or sets the timer again if the file is being changed.
func (u *uses) rang() {
	err := seam.Guard(u.store, func(p *seam.PanicError) error { return p }) // it must not end the program
	switch {
	case errors.Is(err, errLocked), errors.Is(err, errChanged):
		u.dirty.Store(true)
		u.arm()
	case err != nil:
		u.tell(err)
	default:
		u.mu.Lock()
		u.told = false
		u.mu.Unlock()
	}
}

// tell logs that the last uses cannot be stored, once.
func (u *uses) tell(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.told {
		u.told = true
		u.file.o.Logger.Warn("the last uses of tokens cannot be stored", "file", u.file.path, "error", err)
	}
}

// store writes the last uses into the file, unless it has them all.
func (u *uses) store() error {
	u.writing.Lock()
	defer u.writing.Unlock()
	u.dirty.Store(false) // before the uses are read, so that a later one sets the timer
	f := u.file
	path := resolved(f.path)
	unlock, err := tryLock(path)
	if err != nil {
		return err
	}
	s, read, err := readFile(path, f.o.Separator, f.o.Seams.Clock.Now())
	if err != nil {
		return unlock() // the look of a request tells of it
	}
	if f.mergeUses(s) {
		err = writeFile(path, s, read)
	}
	return errors.Join(err, unlock())
}

// mergeUses sets the last uses of tokens that are in the file, and reports whether one is later.
func (f *TokenFile) mergeUses(s *stored) (later bool) {
	v := f.view.Load()
	for i := range s.Tokens {
		t := &s.Tokens[i]
		if k := v.known[t.ID]; k != nil && k.lastUse().After(t.LastUse) {
			t.LastUse, later = k.lastUse(), true
		}
	}
	return later
}

// close waits for a write that is under way and stores the uses that are not stored yet.
func (u *uses) close() error {
	u.mu.Lock()
	timer, rung := u.timer, u.rung
	u.closed, u.timer = true, nil
	u.mu.Unlock()
	if timer != nil && !timer.Stop() {
		if err := u.file.o.Seams.Executor.Wait(context.Background(), rung); err != nil {
			return err
		}
	}
	if !u.dirty.Load() {
		return nil
	}
	if err := u.store(); err != nil {
		return fmt.Errorf("auth: store the last uses of tokens in %s: %w", u.file.path, err)
	}
	return nil
}

// resolved is the file that a path stands for, so that a link stays one when the file is replaced.
func resolved(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

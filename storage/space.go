package storage

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// checkEveryBytes and checkEvery are how much may be committed, and how long commits
// may go on, between two looks at free space. The bytes are far below the default
// floor, so that the store's own commits do not pass it by much. The time is for
// other programs that write to the same disk.
const (
	checkEveryBytes = 4 << 20
	checkEvery      = 100 * time.Millisecond
)

// space watches the free space under a store. Pebble must never meet a full disk in
// the middle of its own work, because it would try that again without end.
type space struct {
	floor     uint64
	free      func() (uint64, error) // nil: not watched
	sinceLook atomic.Int64
	lookedAt  atomic.Int64 // when it looked last, in nanoseconds of seam.Seams.Steady
	below     atomic.Bool
	refusedAt atomic.Int64 // when it refused a commit last, in nanoseconds since 1970; 0: never
}

// watch watches the directory, unless the floor is negative or its file system
// cannot tell.
func (s *space) watch(dir pebblestore.Dir, floor int64) {
	if floor < 0 {
		return
	}
	s.floor = uint64(floor)
	if _, err := dir.FreeBytes(); err == nil {
		s.free = dir.FreeBytes
	}
}

// The free space is not asked for at each commit, because the answer is a system call.
// A commit that was refused is asked again each time, so that commits go on as soon as
// space returns. admit refuses a commit of n bytes at the given time while free space is below the
// floor.
func (s *space) admit(n int, at time.Time) error {
	if s.free == nil {
		return nil
	}
	now := at.UnixNano()
	age := time.Duration(now - s.lookedAt.Load()) // less than zero: another look was later
	if s.sinceLook.Add(int64(n)) < checkEveryBytes && !s.below.Load() && age >= 0 && age < checkEvery {
		return nil
	}
	s.sinceLook.Store(0)
	s.lookedAt.Store(now)
	free, err := s.free()
	if err != nil {
		return nil // a file system that can no longer tell is no longer watched
	}
	s.below.Store(free < s.floor)
	if free < s.floor {
		return noSpace(free, s.floor)
	}
	return nil
}

// Space returns an error that wraps ErrNoSpace if a commit would be refused for lack of
// free space as far as the store knows, so that a caller may leave a change undone that it
// could not store; that counts as a refused commit, see RefusedAt. It costs one atomic load while
// the last look found space, and a look else. It may be called from any goroutine.
func (s *Store) Space() error {
	if s.fenced == nil && !s.space.below.Load() {
		return nil
	}
	return s.admit(0, s.seams.Steady())
}

// LookAtSpace is Space for a caller that has nothing to store, so RefusedAt stays. A store of
// OpenReadOnly, which no commit makes look, asks the file system itself, at most once a second.
func (s *Store) LookAtSpace() error {
	if !s.readOnly && s.fenced == nil && !s.space.below.Load() {
		return nil
	}
	return s.hasSpace(0, s.seams.Steady())
}

// hasSpace refuses a commit of n bytes while there is too little space here, or in the log.
func (s *Store) hasSpace(n int, now time.Time) error {
	if s.fenced != nil {
		if err := s.fenced.Full(); err != nil {
			return fmt.Errorf("%w: %w", ErrNoSpace, err)
		}
	}
	return s.space.admit(n, now)
}

// admit refuses a commit of n bytes while there is too little space, and notes the time of that.
func (s *Store) admit(n int, now time.Time) error {
	err := s.hasSpace(n, now)
	if err != nil {
		s.space.refusedAt.Store(s.seams.Clock.Now().UnixNano())
	}
	return err
}

// RefusedAt returns when a commit was last refused for lack of free space in this opening;
// zero: none was. It may be called from any goroutine.
func (s *Store) RefusedAt() time.Time {
	at := s.space.refusedAt.Load()
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at)
}

// FreeSpace asks the file system how much space is free under the store, and returns the floor
// below which commits are refused, both in bytes. It returns false if the store does not watch the
// space, or the file system cannot tell. It may be called from any goroutine, also after Close.
func (s *Store) FreeSpace() (free, floor uint64, watched bool) {
	if s.space.free == nil {
		return 0, 0, false
	}
	free, err := s.space.free()
	return free, s.space.floor, err == nil
}

// noSpace is the error of a commit, or of an Open, that is refused.
func noSpace(free, floor uint64) error {
	return fmt.Errorf("%w: %d MiB are free and %d MiB are needed: free some space and try again", ErrNoSpace, free>>20, floor>>20)
}

// checkSpace refuses to open a store where Pebble would have no room to work, because
// an opening writes too: it replays the log into tables. The error names the directory,
// the free space and the floor.
func checkSpace(dir pebblestore.Dir, floor int64) error {
	if floor < 0 {
		return nil
	}
	free, err := dir.FreeBytes()
	if err != nil {
		return nil // a file system that cannot tell is not watched
	}
	if free < uint64(floor) {
		return fmt.Errorf("%s: %w", dir.Path, noSpace(free, uint64(floor)))
	}
	return nil
}

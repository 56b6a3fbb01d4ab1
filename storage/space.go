package storage

import (
	"fmt"
	"sync/atomic"
	"time"
)

// checkEveryBytes and checkEvery are how much may be committed, and how long commits
// may go on, between two looks at free space. The bytes are far below the default
// floor, so that the store's own commits do not pass it by much. The time is for
// what others write to the same disk.
const (
	checkEveryBytes = 4 << 20
	checkEvery      = 100 * time.Millisecond
)

// space watches the free space under a store.
type space struct {
	floor     uint64
	free      func() (uint64, error) // nil: not watched
	sinceLook atomic.Int64
	lookedAt  atomic.Int64 // when it looked last, in nanoseconds of seam.Seams.Steady
	below     atomic.Bool
}

// admit refuses a commit of n bytes at the given time while free space is below the
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

func noSpace(free, floor uint64) error {
	return fmt.Errorf("%w: %d MiB are free and %d MiB are needed: free some space and try again", ErrNoSpace, free>>20, floor>>20)
}

// checkSpace refuses to open a store where Pebble would have no room to work.
func checkSpace(o Options) error {
	if o.MinFreeBytes < 0 {
		return nil
	}
	usage, err := o.Pebble.FS.GetDiskUsage(o.Dir)
	if err != nil {
		return nil // a file system that cannot tell is not watched
	}
	if usage.AvailBytes < uint64(o.MinFreeBytes) {
		return fmt.Errorf("%s: %w", o.Dir, noSpace(usage.AvailBytes, uint64(o.MinFreeBytes)))
	}
	return nil
}

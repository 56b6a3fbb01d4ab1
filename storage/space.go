package storage

import (
	"fmt"
	"sync/atomic"
)

// checkEveryBytes is how much may be committed between two looks at free space.
// It is far below the default floor, so that the floor is seen before it is
// passed by much.
const checkEveryBytes = 4 << 20

// space watches the free space under a store.
type space struct {
	floor     uint64
	free      func() (uint64, error) // nil: not watched
	sinceLook atomic.Int64
	below     atomic.Bool
}

// admit refuses a commit of n bytes while free space is below the floor.
func (s *space) admit(n int) error {
	if s.free == nil {
		return nil
	}
	if s.sinceLook.Add(int64(n)) < checkEveryBytes && !s.below.Load() {
		return nil
	}
	s.sinceLook.Store(0)
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

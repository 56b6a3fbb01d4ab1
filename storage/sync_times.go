package storage

import (
	"slices"
	"sync/atomic"
	"time"
)

// syncBounds are the upper bounds of the buckets of SyncTimes: 10 µs, and each four times the
// one before, up to 10 s.
var syncBounds = func() (bounds []time.Duration) {
	for d := 10 * time.Microsecond; len(bounds) < 11; d *= 4 {
		bounds = append(bounds, d)
	}
	return bounds
}()

// SyncTimes tells how long the syncs of an opening have taken.
type SyncTimes struct {
	Count  uint64
	Sum    time.Duration
	Bounds []time.Duration // of the buckets, ascending
	Within []uint64        // how many took at most the bound at the same place
}

// syncTimes counts syncs by how long they took. The leader alone adds to it.
type syncTimes struct {
	counts [12]atomic.Uint64 // by bucket; the last is for those beyond all bounds
	sum    atomic.Int64      // nanoseconds
}

// add counts a sync. A clock that was put back makes none less than zero.
func (t *syncTimes) add(d time.Duration) {
	d = max(0, d)
	i, _ := slices.BinarySearch(syncBounds, d)
	t.counts[i].Add(1)
	t.sum.Add(int64(d))
}

// SyncTimes returns the times of the syncs since the store was opened, also of those that failed.
// It may be called from any goroutine, also after Close.
func (s *Store) SyncTimes() SyncTimes {
	t := SyncTimes{Bounds: syncBounds, Sum: time.Duration(s.pipeline.times.sum.Load())}
	for i := range s.pipeline.times.counts {
		t.Count += s.pipeline.times.counts[i].Load()
		if i < len(syncBounds) {
			t.Within = append(t.Within, t.Count)
		}
	}
	return t
}

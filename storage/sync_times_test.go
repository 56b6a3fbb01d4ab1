package storage

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A sync belongs to the first bucket with a bound that it does not exceed; one beyond all bounds
// is in the count alone.
func TestBucketsOfSyncTimes(t *testing.T) {
	var s Store
	last := syncBounds[len(syncBounds)-1]
	for _, d := range []time.Duration{-time.Hour, 0, 10 * time.Microsecond, 10*time.Microsecond + 1, 40 * time.Microsecond, last, last + 1} {
		s.pipeline.times.add(d)
	}
	want := SyncTimes{Count: 7, Sum: 60*time.Microsecond + 2*last + 2, Bounds: syncBounds, Within: []uint64{3, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6}}
	if diff := cmp.Diff(want, s.SyncTimes()); diff != "" {
		t.Error(diff)
	}
	if len(s.pipeline.times.counts) != len(syncBounds)+1 {
		t.Errorf("%d counts for %d bounds", len(s.pipeline.times.counts), len(syncBounds))
	}
}

// hangs is an engine with syncs that take a second.
type hangs struct{ *memstore.Store }

func (e hangs) Sync() error {
	<-time.After(time.Second)
	return e.Store.Sync()
}

// A store counts each sync with its time.
func TestSyncTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(Options{Engine: hangs{memstore.New()}})
		if err != nil {
			t.Fatal(err)
		}
		before := s.SyncTimes()
		if err := s.WaitDurable(s.pipeline.applied(0)); err != nil {
			t.Fatal(err)
		}
		after := s.SyncTimes()
		if after.Count != before.Count+1 || after.Sum != before.Sum+time.Second {
			t.Errorf("one sync of a second: %d and %v, and before %d and %v", after.Count, after.Sum, before.Count, before.Sum)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

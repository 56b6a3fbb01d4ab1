package workload

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/object"
)

// TestRawRuns compares the bytes that runs of three steps write to the log with those of the
// reference, and counts the rows that it leaves.
func TestRawRuns(t *testing.T) {
	const n = 30
	s, err := OpenSteps(t.TempDir(), 1, object.Options{})
	if err != nil {
		t.Fatal(err)
	}
	disk := measure.NewDisk()
	db, err := raw.Open(t.TempDir(), disk)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRawRuns(db, 3)
	if err != nil {
		t.Fatal(err)
	}
	logged := func(m measure.Meters, run func(i int) error) float64 {
		meters := measure.Start(m)
		for i := range n {
			if err := run(i); err != nil {
				t.Fatal(err)
			}
		}
		return meters.PerOp(n)["log bytes"]
	}
	ours, theirs := logged(s.Meters(), func(int) error { return s.Run(3) }), logged(disk.Meters(), r.Run)
	if ratio := theirs / ours; ratio < 0.95 || ratio > 1.05 {
		t.Errorf("a run writes %.0f bytes to the log, the reference %.0f", ours, theirs)
	}
	if rows := rows(t, db); rows < 8*n {
		t.Errorf("%d runs of the reference leave %d rows, want 8 each at least: they write over one another", n, rows)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// rows counts the keys of the database.
func rows(t *testing.T, db *pebble.DB) (n int) {
	t.Helper()
	it, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for it.First(); it.Valid(); it.Next() {
		n++
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

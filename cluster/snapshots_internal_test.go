package cluster

import (
	"testing"
	"time"
)

// A snapshot is due by bytes, or by time if anything was written, and not for a minute after one that failed.
func TestSnapshotIsDue(t *testing.T) {
	start := time.Unix(0, 0)
	o, err := Snapshots{EveryBytes: 100, Every: 10 * time.Minute}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	c := o.clock(start)
	c.bytes = 1000
	must := func(about string, bytes uint64, after time.Duration, due bool) {
		t.Helper()
		if got := c.due(bytes, start.Add(after)); got != due {
			t.Errorf("%s: due %v, want %v", about, got, due)
		}
	}
	must("too few bytes", 1099, 10*time.Minute-1, false)
	must("enough bytes", 1100, 0, true)
	must("enough time", 1001, 10*time.Minute, true)
	must("nothing written", 1000, time.Hour, false)
	c.taken(1100, start.Add(time.Minute), false)
	must("it failed", 1200, 2*time.Minute-1, false)
	must("a minute later", 1200, 2*time.Minute, true)
	c.taken(1200, start.Add(3*time.Minute), true)
	must("it was taken", 1299, 13*time.Minute-1, false)
	must("the time is counted from the last one", 1201, 13*time.Minute, true)
}

// The defaults of the design.
func TestSnapshotDefaults(t *testing.T) {
	if s, err := (Snapshots{}).withDefaults(); err != nil || s.EveryBytes != 64<<20 || s.Every != 10*time.Minute {
		t.Errorf("%+v: %v", s, err)
	}
	for _, wrong := range []Snapshots{{Every: -1}, {BytesPerSecond: -1}} {
		if _, err := wrong.withDefaults(); err == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}

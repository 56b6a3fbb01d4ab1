package cluster_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/cluster"
)

// often has a node make snapshots often.
func often(o *cluster.Options) {
	o.Snapshots = cluster.Snapshots{EveryBytes: 2 << 10, Every: time.Minute}
}

// A node with a view that is older than the log, or with an empty disk, begins with the newest snapshot by itself, and has all that was acknowledged.
//
// Proves N2, N6 and N7.
func TestViewBehindATruncatedLog(t *testing.T) {
	for about, disk := range map[string]*vfs.MemFS{"an old view": nil, "an empty disk": vfs.NewCrashableMem()} {
		t.Run(about, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				a, b := w.machine("a"), w.machine("b")
				a.edit, b.edit = often, often
				a.join()
				a.serves()
				a.add("x")
				b.join()
				time.Sleep(5 * time.Second)
				b.kill()
				left := w.head().Last
				for range 200 {
					a.add("x")
					time.Sleep(100 * time.Millisecond)
				}
				if first := w.head().First; first <= left+1 {
					t.Fatalf("the log begins at %d, and b had it up to %d", first, left)
				}
				if disk != nil {
					b.disk = disk
				}
				b.join()
				time.Sleep(5 * time.Second)
				if term := w.head().Term; term != 1 {
					t.Errorf("the node that restored its view took the log over: term %d", term)
				}
				a.kill()
				b.serves()
				if got := b.add("x"); got != 202 {
					t.Errorf("the next owner answers %d, want 202", got)
				}
			})
		})
	}
}

// The owner keeps two snapshots at most, and the records behind the older one.
func TestOwnerTruncatesTheLog(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		a.edit = often
		a.join()
		a.serves()
		for range 300 {
			a.add("x")
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		snapshots, err := w.log.Snapshots(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		head := w.head()
		if len(snapshots) != 2 || head.First != snapshots[1].Last+1 || head.First < 10 || head.Last-head.First > 200 {
			t.Errorf("%d snapshots, records %d to %d", len(snapshots), head.First, head.Last)
		}
	})
}

// Without a write no snapshot is made, however long that takes. Off makes none at all.
func TestIdleOwnerMakesNoSnapshots(t *testing.T) {
	for about, c := range map[string]struct {
		off  bool
		want int
	}{"on": {false, 1}, "off": {true, 0}} { // the one is for the records of the opening
		t.Run(about, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				a := w.machine("a")
				a.edit = func(o *cluster.Options) { o.Snapshots = cluster.Snapshots{Every: time.Minute, Off: c.off} }
				a.join()
				a.serves()
				time.Sleep(time.Hour)
				snapshots, err := w.log.Snapshots(t.Context(), 0)
				if err != nil || len(snapshots) != c.want {
					t.Errorf("%d snapshots after an idle hour, want %d: %v", len(snapshots), c.want, err)
				}
			})
		})
	}
}

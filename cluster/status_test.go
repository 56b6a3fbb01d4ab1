package cluster_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/seam"
)

// clockOf are the seams of a process on a machine.
func clockOf(m *machine) seam.Seams { return seam.Seams{Clock: m.clock} }

// The status tells which node serves, which wait, which are gone and how long they have been quiet. It changes nothing.
func TestStatus(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		a := w.machine("a")
		a.edit = often
		a.join()
		a.serves()
		for _, id := range []string{"b", "c", "d"} {
			w.machine(id).join()
		}
		time.Sleep(2 * time.Second)
		for range 100 {
			a.add("x")
			time.Sleep(100 * time.Millisecond)
		}
		w.nodes["c"].kill()
		if err := w.nodes["d"].node().Close(); err != nil {
			t.Fatal(err)
		}
		a.clock.by.Store(int64(2 * time.Second))
		time.Sleep(10 * time.Second)
		own, err := a.node().Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		outside, err := cluster.ReadStatus(t.Context(), w.log, 0, clockOf(a))
		if err != nil {
			t.Fatal(err)
		}
		for about, s := range map[string]cluster.Status{"of the node": own, "from outside": outside} {
			if s.Owner != "a" || s.Term != 1 || s.Last != w.head().Last || s.Skew != 2*time.Second || len(s.Snapshots) == 0 || s.BlobBytes == 0 || len(s.Nodes) != 4 {
				t.Fatalf("%s: %+v", about, s)
			}
			if snapshot := s.Snapshots[0]; snapshot.Behind != uint64(s.Last-snapshot.Last) || snapshot.Blobs == 0 {
				t.Errorf("%s: the snapshot is %+v, and the log ends at %d", about, snapshot, s.Last)
			}
			text := s.String()
			for _, want := range []string{"owner a", "a:1  serves", "b:1  waits", "c:1  waits", "-    away", "2s off"} {
				if !strings.Contains(text, want) {
					t.Errorf("%s: the text has no %q:\n%s", about, want, text)
				}
			}
			if _, err := json.Marshal(s); err != nil {
				t.Errorf("%s: %v", about, err)
			}
		}
		if quiet := own.Nodes[2].Quiet; quiet < 9*time.Second || quiet > 11*time.Second {
			t.Errorf("the node that was killed is quiet for %v", quiet)
		}
		for i, quiet := range []time.Duration{0, 0, 1500 * time.Millisecond, 1500 * time.Millisecond} {
			if n := outside.Nodes[i]; n.Quiet != quiet {
				t.Errorf("from outside node %s is quiet for %v, want %v", n.ID, n.Quiet, quiet)
			}
		}
	})
}

package cluster_test

import (
	"testing"
	"time"
)

// One node serves, the others wait and name it.
//
// Proves N3.
func TestOneServesAndTheOthersNameIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := w.start("a", "b", "c")
		if got := n["a"].add("x"); got != 1 {
			t.Errorf("the first call answers %d", got)
		}
		n["b"].mustBeMoved("a")
		n["c"].mustBeMoved("a")
		time.Sleep(time.Hour)
		if len(w.active()) != 1 || w.head().Term != 1 {
			t.Errorf("after an hour %d nodes serve, in term %d", len(w.active()), w.head().Term)
		}
	})
}

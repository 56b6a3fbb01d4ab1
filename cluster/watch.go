package cluster

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Limits of the clock of a node: its distance from the clock of the log.
const (
	skewTold = time.Second     // above it the node warns
	skewMost = 5 * time.Second // above it the node neither claims nor keeps the store
)

// lookFresh is how old the answer to a look may be for a claim. An older look says nothing of the owner, because it may have beaten since.
const lookFresh = 3 * shardlog.LookEvery

// watch is all that a node has seen of its cluster, and the rule by which it claims. It makes no call. Node.mu guards it.
type watch struct {
	id      string // of this node
	silence shardlog.Silence
	look    shardlog.Look // the newest that succeeded
	began   time.Time     // of that look, steady
	ended   time.Time     // when its answer came, steady; zero: there is none
	skew    time.Duration // of the clock of the node, as that look showed it
	moved   map[string]time.Time
}

// looked takes a look that has succeeded, when it began and ended by the steady clock, and the time of day at both.
func (w *watch) looked(began, ended, before, after time.Time, look shardlog.Look) {
	if w.moved == nil {
		w.moved = make(map[string]time.Time)
	}
	for _, n := range look.Nodes {
		if has, ok := w.row(n.ID); !ok || has.Incarnation != n.Incarnation || has.Beat != n.Beat {
			w.moved[n.ID] = ended
		}
	}
	w.silence.Looked(began, ended, look.Nodes)
	w.look, w.began, w.ended = look, began, ended
	w.skew = skew(before, after, look.Clock)
}

// skew is how far a clock is from an interval in which it was read.
func skew(before, after, clock time.Time) time.Duration {
	return max(before.Sub(clock), clock.Sub(after), 0)
}

// row is the row of a node in the newest look.
func (w *watch) row(id string) (shardlog.Node, bool) { return rowOf(w.look, id) }

// owner is the id of the node that owns the log, and its row if it has one. The id is empty if no node does.
func (w *watch) owner() (id string, row shardlog.Node) {
	id = w.look.State.Node()
	row, _ = w.row(id)
	return id, row
}

// released reports whether the row is that of a node that has nothing open: it has ended in order, or cannot open the store. A node that
// drains and has an address is about to end.
func released(n shardlog.Node) bool { return n.Draining && n.Addr == "" }

// claimable returns the term behind which this node may claim the log, or why it must wait. ready is the steady time since which it could
// own the log: a look that began earlier told the others that it cannot.
func (w *watch) claimable(now, ready time.Time) (seen uint64, wait string) {
	state := w.look.State
	owner, row := w.owner()
	switch {
	case w.ended.IsZero() || now.Sub(w.ended) > lookFresh:
		return 0, "the log does not answer"
	case w.began.Before(ready):
		return 0, "the other nodes are being told that this one is ready"
	case w.skew > skewMost:
		return 0, fmt.Sprintf("%v: %v off", ErrClock, w.skew.Round(time.Millisecond))
	case state.Lost != "":
		return 0, "the log is in quarantine: " + state.Lost
	case state.Term == 0, owner == "", owner == w.id, row.ID != "" && released(row), w.silence.Silent(owner):
		return state.Term, ""
	}
	return 0, fmt.Sprintf("node %s owns the log, in term %d", owner, state.Term)
}

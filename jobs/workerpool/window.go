package workerpool

import (
	"cmp"
	"slices"
)

// place is a position in an ordered set of pending tasks: of a queue by priority
// and order, or of those that wait by time and order.
type place struct{ major, order uint64 }

func (p place) compare(q place) int {
	if c := cmp.Compare(p.major, q.major); c != 0 {
		return c
	}
	return cmp.Compare(p.order, q.order)
}

// entry is a task at its place.
type entry struct {
	place
	num   uint64
	fresh bool // put at this place in the present turn, and not stored there yet
	alone bool // its row was or could have been read with those of others, which is tried once
	row   *row // the task; nil: to be read
}

// keepBytes bounds the input of a task whose row stays in memory with its entry.
const keepBytes = 512

const (
	// windowMax bounds the entries of a window; there may be more while a turn
	// runs. What fits need not be read again: with 1,024 a task of a backlog cost
	// an eighth more.
	windowMax = 8192
	// loadMax bounds the entries that one turn reads.
	loadMax = 1024
)

// window holds the first entries of an ordered set whose rest is only stored.
//
//	entries in memory ≤ edge < entries that are only stored, if more
type window struct {
	entries []entry // sorted by place
	more    bool    // there may be stored entries after edge
	edge    place
	max     int
}

// newWindow is a window that has yet to be loaded.
func newWindow(max int) window { return window{more: true, max: max} }

func (w *window) search(p place) (int, bool) {
	if n := len(w.entries); n > 0 && w.entries[n-1].compare(p) < 0 {
		return n, false // the usual case: at the end
	}
	return slices.BinarySearchFunc(w.entries, p, func(e entry, p place) int { return e.compare(p) })
}

// add puts an entry in the window and reports whether it belongs there; if not,
// it must be stored.
func (w *window) add(e entry) bool {
	if w.more && e.compare(w.edge) > 0 {
		return false
	}
	i, found := w.search(e.place)
	if !found {
		w.entries = slices.Insert(w.entries, i, e)
	}
	return true
}

// first returns the first entry in memory.
func (w *window) first() (entry, bool) {
	if len(w.entries) == 0 {
		return entry{}, false
	}
	return w.entries[0], true
}

// dropFirst takes the first entry out.
func (w *window) dropFirst() { w.entries = w.entries[1:] }

// remove takes out the entry at p, if it is in memory.
func (w *window) remove(p place) {
	switch i, found := w.search(p); {
	case found && i == 0:
		w.dropFirst() // the usual case of a Discard
	case found:
		w.entries = slices.Delete(w.entries, i, i+1)
	}
}

// trim leaves the last entries to storage if there are too many. None of them
// may be fresh.
func (w *window) trim() {
	if len(w.entries) <= w.max {
		return
	}
	w.entries = w.entries[:w.max]
	w.more, w.edge = true, w.entries[w.max-1].place
}

// wants reports whether entries should be loaded: those after edge.
func (w *window) wants() bool { return w.more && len(w.entries) == 0 }

// loads is how many stored entries after edge load takes.
func (w *window) loads() int { return min(w.max, loadMax) }

// load puts stored entries after edge in the window: all of them if there are
// fewer than loads.
func (w *window) load(es []entry) {
	w.entries = append(w.entries, es...)
	w.more = len(es) >= w.loads()
	if w.more {
		w.edge = es[len(es)-1].place
	}
}

package object

import (
	"fmt"
	"sync"

	"github.com/holdfast-dev/holdfast/storage"
)

// waits is who waits for whom: an edge for each call that a turn makes while it
// holds its object. A call that would close a circle is refused, so that nothing
// ever hangs.
type waits struct {
	mu sync.Mutex
	to map[storage.ID][]storage.ID
}

// begin notes that a turn of from waits for to, or returns ErrDeadlock.
func (w *waits) begin(from, to storage.ID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if from == to {
		return fmt.Errorf("%s: %w: it calls itself", from, ErrDeadlock)
	}
	if w.reaches(to, from, nil) {
		return fmt.Errorf("%s: %w: %s waits for it already", from, ErrDeadlock, to)
	}
	if w.to == nil {
		w.to = make(map[storage.ID][]storage.ID)
	}
	w.to[from] = append(w.to[from], to)
	return nil
}

// end removes one edge.
func (w *waits) end(from, to storage.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	edges := w.to[from]
	for i, id := range edges {
		if id == to {
			edges = append(edges[:i], edges[i+1:]...)
			break
		}
	}
	if len(edges) == 0 {
		delete(w.to, from)
	} else {
		w.to[from] = edges
	}
}

// reaches reports whether a path of waits leads from one object to another.
func (w *waits) reaches(from, to storage.ID, seen map[storage.ID]bool) bool {
	for _, next := range w.to[from] {
		if next == to {
			return true
		}
		if seen[next] {
			continue
		}
		if seen == nil {
			seen = make(map[storage.ID]bool)
		}
		seen[next] = true
		if w.reaches(next, to, seen) {
			return true
		}
	}
	return false
}

package object

import (
	"fmt"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/storage"
)

// waits is a graph of turns that wait for one another. A turn waits
//
//   - for the turn of each call that it makes, also while it is lent out,
//   - as a repeat of a call with an idempotency key, for the turn of the first call,
//   - while it does not hold its object, for the turn that does.
//
// A wait that would close a circle is refused before it begins, so that nothing ever
// hangs. A turn that waits for no other turn cannot be part of a circle, so the
// graph does not know it.
type waits struct {
	mu      sync.Mutex
	callers map[*turn]*caller
	holders map[storage.ID]*caller // those that held their object when they began to wait
	spare   []*caller
}

// caller is a turn that waits for other turns.
type caller struct {
	turn *turn
	act  *activation
	on   []awaited
}

// awaited is a turn that another waits for, and its object.
type awaited struct {
	turn   *turn
	id     storage.ID
	repeat bool // it is the first call under the idempotency key of the one that waits
}

// maxSpareCallers bounds the callers that are kept for use again: a burst of calls
// leaves no more memory behind.
const maxSpareCallers = 256

// begin notes that a turn of a waits for another turn, or returns ErrDeadlock.
func (w *waits) begin(t *turn, a *activation, on awaited) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.caller(t, a)
	circle := search{waits: w, goal: t}
	if circle.visit(on) {
		w.release(c)
		return fmt.Errorf("%s: %w: %s", a.id, ErrDeadlock, circle.text(on, a.id))
	}
	c.on = append(c.on, on)
	return nil
}

// end removes one wait.
func (w *waits) end(t *turn, on awaited) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.callers[t]
	for i := range c.on {
		if c.on[i].turn == on.turn {
			last := len(c.on) - 1
			c.on[i], c.on[last] = c.on[last], awaited{}
			c.on = c.on[:last]
			break
		}
	}
	w.release(c)
}

// resumed notes that a turn which was lent out holds its object again. A task of
// its handler may have a call under way.
func (w *waits) resumed(t *turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.callers[t]; c != nil {
		w.holders[c.act.id] = c
	}
}

// caller returns the place of a turn in the graph.
func (w *waits) caller(t *turn, a *activation) *caller {
	c := w.callers[t]
	if c == nil {
		if n := len(w.spare); n > 0 {
			c, w.spare = w.spare[n-1], w.spare[:n-1]
		} else {
			c = new(caller)
		}
		c.turn, c.act = t, a
		if w.callers == nil {
			w.callers, w.holders = make(map[*turn]*caller), make(map[storage.ID]*caller)
		}
		w.callers[t] = c
	}
	if t.holds() {
		w.holders[a.id] = c
	}
	return c
}

// release takes a turn that waits for no other out of the graph.
func (w *waits) release(c *caller) {
	if len(c.on) > 0 {
		return
	}
	delete(w.callers, c.turn)
	if w.holders[c.act.id] == c {
		delete(w.holders, c.act.id)
	}
	c.turn, c.act = nil, nil
	if len(w.spare) < maxSpareCallers {
		w.spare = append(w.spare, c)
	}
}

// holds reports whether the turn keeps others from its object. One whose activation
// has ended does not.
func (c *caller) holds() bool {
	if !c.turn.holds() {
		return false
	}
	c.act.mu.Lock()
	defer c.act.mu.Unlock()
	return !c.act.gone
}

// search looks for a way along the waits to a turn.
type search struct {
	waits *waits
	goal  *turn
	seen  map[*turn]bool
	way   []storage.ID // from the goal's object to the start of the search
}

// visit reports whether a way leads from a turn to the goal, and notes it.
func (s *search) visit(from awaited) bool {
	if from.turn == s.goal {
		return true
	}
	c, holder := s.waits.callers[from.turn], s.holder(from)
	if c == nil && holder == nil || s.seen[from.turn] || from.turn.phase.Load() == phaseOver {
		return false
	}
	if s.seen == nil {
		s.seen = make(map[*turn]bool)
	}
	s.seen[from.turn] = true
	found := holder != nil && s.visit(awaited{turn: holder.turn, id: from.id})
	if c != nil {
		for i := 0; i < len(c.on) && !found; i++ {
			found = s.visit(c.on[i])
		}
	}
	if n := len(s.way); found && (n == 0 || s.way[n-1] != from.id) {
		s.way = append(s.way, from.id)
	}
	return found
}

// holder returns the turn that keeps another from its object, if it waits itself.
func (s *search) holder(t awaited) *caller {
	if t.turn.holds() || t.turn.phase.Load() == phaseLost {
		return nil
	}
	c := s.waits.holders[t.id]
	if c == nil || c.turn == t.turn || !c.holds() {
		return nil
	}
	return c
}

// text tells of the circle that a wait of an object's turn would close.
func (s *search) text(on awaited, id storage.ID) string {
	const most = 8 // objects: a line of a log should hold it
	var b strings.Builder
	switch way := s.way; {
	case on.repeat:
		b.WriteString("it repeats the call under its idempotency key")
	case on.id == id && len(way) <= 1:
		return "it called itself"
	default:
		fmt.Fprintf(&b, "it called %s", on.id)
	}
	for i := len(s.way) - 2; i >= max(0, len(s.way)-most); i-- {
		if s.way[i] != id {
			fmt.Fprintf(&b, ", which is waiting for %s", s.way[i])
		}
	}
	fmt.Fprintf(&b, ", which is waiting for %s", id)
	return b.String()
}

package object

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// waits is a graph of turns that wait for one another. A turn waits
//
//   - for the turn of each call that it makes, also while it is lent out,
//   - as a repeat of a call with an idempotency key, for the turn of the first call,
//   - while it does not hold its object, for the turn that does.
//
// A wait that would close a circle is refused before it begins, so that no call
// with the context of a turn hangs. For example, acc0 has called acc1, and the handler of acc1 calls
// acc0: its turn would wait for the turn of acc0, which waits for it. That call fails with
//
//	account/acc1: deadlock: it called account/acc0, which is waiting for account/acc1
//
// A turn that waits for no other turn cannot be part of a circle, so it is not in the
// graph, and a call from outside costs nothing here. The third kind of wait has no entry:
// a search finds it from the phase of the turn and from holders.
type waits struct {
	// mu guards the graph and all callers in it. It is locked before activation.mu.
	mu      sync.Mutex
	callers map[*turn]*caller
	holders map[storage.ID]*caller // those that held their object when they began to wait
	spare   []*caller              // empty, for use again
	refused []refusedCall          // the newest maxRefused, as a ring that begins at next
	next    int                    // where the next one goes in a full ring
}

// refusedCall is a wait that begin has refused, of a turn of from for a turn of to.
type refusedCall struct {
	from, to storage.ID
	at       time.Time // by the wall clock
	text     string
}

// maxRefused bounds the refused calls that are kept.
const maxRefused = 1000

// caller is a turn that waits for other turns: a node of the graph.
type caller struct {
	turn *turn
	act  *activation // of the turn
	on   []awaited   // more than one if goroutines of the handler make calls
}

// awaited is a turn that another waits for, and its object: an edge of the graph.
type awaited struct {
	turn    *turn
	id      storage.ID
	repeat  bool     // it is the first call under the idempotency key of the one that waits
	request *Request // of the turn; nil for a repeat
}

// of reports whether the turn is one of an activation, and not of another of the same object. The
// turn has begun: its phase tells that its draft is set.
func (on awaited) of(a *activation) bool { return !on.repeat && on.request.draft.act == a }

// maxSpareCallers bounds the callers that are kept for use again: a burst of calls
// leaves no more memory behind.
const maxSpareCallers = 256

// begin notes that a turn of a waits for another turn, or returns ErrDeadlock with the
// objects of the circle. The search and the new edge are under one lock of mu, so that
// two turns which begin to wait for each other at the same time cannot both pass.
func (w *waits) begin(t *turn, a *activation, on awaited) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.caller(t, a)
	circle := search{waits: w, goal: t}
	if circle.visit(on) {
		w.release(c)
		err := fmt.Errorf("%s: %w: %s", a.object.ID, ErrDeadlock, circle.text(on, a.object.ID))
		w.refuse(refusedCall{a.object.ID, on.id, a.host.seams.Clock.Now(), err.Error()})
		return err
	}
	c.on = append(c.on, on)
	t.called = t.called || !on.repeat
	return nil
}

// called reports whether a turn has called another object.
func (w *waits) called(t *turn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return t.called
}

// refuse keeps a refused call, in place of the oldest if there are too many. The caller holds
// mu.
func (w *waits) refuse(r refusedCall) {
	if len(w.refused) < maxRefused {
		w.refused = append(w.refused, r)
		return
	}
	w.refused[w.next] = r
	w.next = (w.next + 1) % maxRefused
}

// newest returns the newest refused call that a turn of an object made, or nil. The caller
// holds mu.
func (w *waits) newest(from storage.ID) *refusedCall {
	for i := range w.refused {
		r := &w.refused[(w.next+len(w.refused)-1-i)%len(w.refused)]
		if r.from == from {
			return r
		}
	}
	return nil
}

// end removes one wait that begin has noted.
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

// resumed notes that a turn which was lent out holds its object again. It is a holder
// then, if a goroutine of its handler has a call under way. Release calls it.
func (w *waits) resumed(t *turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.callers[t]; c != nil {
		w.holders[c.act.object.ID] = c
	}
}

// caller returns the node of a turn, and adds it to the graph if it is not there. The
// caller holds mu.
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
		w.holders[a.object.ID] = c
	}
	return c
}

// release takes the node of a turn out of the graph if it waits for no other turn. The
// caller holds mu.
func (w *waits) release(c *caller) {
	if len(c.on) > 0 {
		return
	}
	delete(w.callers, c.turn)
	if w.holders[c.act.object.ID] == c {
		delete(w.holders, c.act.object.ID)
	}
	c.turn, c.act = nil, nil
	if len(w.spare) < maxSpareCallers {
		w.spare = append(w.spare, c)
	}
}

// holds reports whether the turn keeps others from its object. A turn of an activation
// that has ended does not, because the next activation does not wait for it.
func (c *caller) holds() bool {
	if !c.turn.holds() {
		return false
	}
	c.act.mu.Lock()
	defer c.act.mu.Unlock()
	return !c.act.gone
}

// search looks for a way along the waits to a turn, depth first. It is used once, under
// waits.mu.
type search struct {
	waits *waits
	goal  *turn
	seen  map[*turn]bool
	way   []storage.ID // from the goal's object to the start of the search
}

// visit reports whether a way leads from a turn to the goal, and notes it in s.way. From
// a turn the search goes to the holder of its object, if the turn does not hold it, and
// to all turns that it waits for. A turn that has ended leads nowhere.
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

// holder returns the turn that keeps another from its object, if that turn is in the
// graph; nil otherwise. A turn that holds its object needs none, and one that has lost
// its object waits for it no more.
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

// text describes the circle that a wait of a turn of id would close, from the call on
// back to id. In a long circle it names only the objects that the call comes to first.
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

// wait is a call for which a turn waits. The zero value is none.
type wait struct {
	turn *turn
	on   awaited
}

// turnBehind returns the turn of this host that ctx comes from, and the turn's
// activation; nil if there is none or it has ended.
func (h *Host) turnBehind(ctx context.Context) (*turn, *activation) {
	t := turnOf(ctx)
	if t == nil || t.state == nil || t.state.act.host != h || t.phase.Load() == phaseOver {
		return nil, nil
	}
	return t, t.state.act
}

// link adds the wait for a call that a turn makes to the graph. It returns ErrDeadlock if
// the call would close a circle. The turn of the request is made here, before the request
// is delivered, because the graph needs it as a node.
func (h *Host) link(t *turn, a *activation, r *Request) (wait, error) {
	if t == nil {
		return wait{}, nil
	}
	if r.turn == nil {
		r.turn = new(turn)
	}
	r.turn.phase.Store(phaseQueued)
	w := wait{t, awaited{turn: r.turn, id: r.id, request: r}}
	if err := h.waits.begin(t, a, w.on); err != nil {
		return wait{}, err
	}
	return w, nil
}

// unlink removes the wait that link has added.
func (h *Host) unlink(w wait) {
	if w.turn != nil {
		h.waits.end(w.turn, w.on)
	}
}

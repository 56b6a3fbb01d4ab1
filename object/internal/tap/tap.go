// Package tap passes the events of commits on to listeners, from memory.
//
//   - An event enters the Hub when its commit is visible, and then has a position: a number
//     that grows in the order in which events enter.
//   - A listener gets an event only when the commit of that and of all events before it are
//     durable, because a crash could take the commit back.
//   - All listeners share one ring of the newest events. So a slow listener costs no memory.
//     One that is behind the ring is told that it has missed events (ErrGap).
//   - Without a listener nothing enters: On is one atomic load.
//
// Each listener belongs to a topic: all events, those of a class, or those of an object. A
// topic lists its events of the ring, so that a listener to a quiet object does not search
// among those of a busy one, and does not fall behind because of them.
//
// A Hub has no goroutine. The first event that waits for the disk asks to be told when it is
// durable (Config.After), and that one step then serves all that have come.
package tap

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// The bounds of the ring. A busy host has MaxEvents in about ten seconds. Without a
// listener to a class or to all fewer are enough, because the store has the events of an object
// too.
const (
	MaxEvents, MaxBytes             = 1 << 16, 16 << 20
	maxObjectEvents, maxObjectBytes = 1 << 10, 1 << 20
	// Linger is how long the ring goes on without a listener to it, so that a client can come
	// back to its place after a short break.
	Linger = time.Minute
)

// ErrGap says that a listener has missed events, because they have left the ring.
var ErrGap = errors.New("tap: events were missed")

// Config has the functions of the host that a Hub calls.
type Config struct {
	// Durable reports whether a commit is on disk.
	Durable func(storage.Ticket) bool
	// After calls a function once a commit is on disk, or the store has failed, which is its
	// error. It may do so at once.
	After func(storage.Ticket, func(error))
	// Position returns a number that is greater than all before, in earlier processes too.
	Position func() uint64
}

// Event is an event as it enters.
type Event[E any] struct {
	Seq   uint64 // of its object; greater than those of the object's earlier events
	Bytes int    // of memory that it keeps
	Value E
}

// Entry is an event with its place in the order of all events. It never changes.
type Entry[E any] struct {
	Event[E]
	ID       storage.ID
	Position uint64

	ticket storage.Ticket // of its commit
}

// Hub holds the newest events and those that listen to them. Its methods may be called from any
// goroutine. The mutex is held for a few instructions an event, and nothing waits meanwhile.
type Hub[E any] struct {
	config Config
	on     atomic.Bool // there are listeners, or ring is set

	mu     sync.Mutex // guards all fields below, those of topics and of listeners
	all    topic[E]   // the ring: each entry that a topic has is in it too
	topics map[storage.ID]*topic[E]
	bytes  int    // of all entries of the ring
	newest uint64 // the position of the newest entry, or that of the last begin
	// durable is the position up to which listeners may see entries. The last pending
	// entries of the ring are beyond it; late is the greatest of their tickets.
	durable uint64
	pending int
	late    storage.Ticket
	busy    bool // passed will be called

	ring   bool      // all events enter, because of a listener to a class or to all
	wide   int       // such listeners
	leftAt time.Time // when the last of them left
	cause  error     // why the host has ended; nil while it lives
}

// topic lists the entries of the ring with one class, or one object, in order.
type topic[E any] struct {
	queue queue[*Entry[E]]
	// floor is the position from which on the list is whole: a listener behind it has missed
	// something.
	floor     uint64
	listeners int
	told      chan struct{} // closed when there is news; nil while no listener waits
}

// wake tells the listeners that wait.
func (t *topic[E]) wake() {
	if t.told != nil {
		close(t.told)
		t.told = nil
	}
}

// New returns a Hub without events.
func New[E any](c Config) *Hub[E] {
	return &Hub[E]{config: c, topics: make(map[storage.ID]*topic[E])}
}

// On reports whether events may have to enter. A caller makes its commit visible before it
// asks, and a listener is counted before it reads the store. So an event that does not
// enter was visible to each listener from its beginning.
func (h *Hub[E]) On() bool { return h.on.Load() }

// Wants reports whether the events of an object have to enter now. It ends the ring if that
// has been without a listener for Linger.
func (h *Hub[E]) Wants(id storage.ID, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ring && h.wide == 0 && now.Sub(h.leftAt) > Linger {
		h.ring = false
		h.bound()
		h.settle()
	}
	return h.ring || h.topics[id] != nil
}

// Enter takes the events of one commit of an object. The commit is visible, and the object
// makes no other until Enter has returned, so that its events are in the order of its commits.
func (h *Hub[E]) Enter(id storage.ID, commit storage.Ticket, events []Event[E]) {
	h.mu.Lock()
	object, class := h.topics[id], h.topics[storage.ID{Class: id.Class}]
	if !h.ring && object == nil || h.cause != nil {
		h.mu.Unlock()
		return
	}
	for _, ev := range events {
		e := &Entry[E]{Event: ev, ID: id, Position: h.config.Position(), ticket: commit}
		h.newest = e.Position
		h.all.queue.push(e)
		h.bytes += e.Bytes
		for _, t := range []*topic[E]{object, class} {
			if t != nil {
				t.queue.push(e)
			}
		}
	}
	h.pending += len(events)
	h.late = max(h.late, commit)
	h.bound()
	first := !h.busy
	h.busy = true
	h.mu.Unlock()
	if first {
		h.config.After(commit, h.passed)
	}
}

// bound drops the oldest entries until the others keep the bounds. The caller holds mu.
func (h *Hub[E]) bound() {
	events, bytes := MaxEvents, MaxBytes
	if !h.ring {
		events, bytes = maxObjectEvents, maxObjectBytes
	}
	for h.all.queue.len() > events || h.bytes > bytes {
		h.forget()
	}
}

// forget drops the oldest entry. One that was not durable yet wakes its listeners, because
// nothing else may come to tell them of the gap. The caller holds mu.
func (h *Hub[E]) forget() {
	unseen := h.pending == h.all.queue.len()
	e := h.all.queue.pop()
	h.bytes -= e.Bytes
	if unseen {
		h.pending--
	}
	h.each(e, func(t *topic[E]) {
		t.floor = max(t.floor, e.Position)
		if t != &h.all {
			t.queue.pop()
		}
		if unseen {
			t.wake()
		}
	})
}

// each calls f with the topics that list an entry. The caller holds mu.
func (h *Hub[E]) each(e *Entry[E], f func(*topic[E])) {
	f(&h.all)
	for _, key := range [...]storage.ID{{Class: e.ID.Class}, e.ID} {
		if t := h.topics[key]; t != nil && e.Position > t.floor {
			f(t)
		}
	}
}

// passed shows listeners the entries that are durable by now, and has itself called again if
// others are not. A failed store shows nothing any more.
func (h *Hub[E]) passed(err error) {
	h.mu.Lock()
	for h.pending > 0 {
		e := h.all.queue.at(h.all.queue.len() - h.pending)
		if !h.config.Durable(e.ticket) {
			break
		}
		h.pending--
		h.durable = e.Position
		h.each(e, (*topic[E]).wake)
	}
	late := h.late
	if h.pending == 0 {
		h.late = 0
	}
	h.busy = h.pending > 0 && err == nil
	again := h.busy
	h.mu.Unlock()
	if again {
		h.config.After(late, h.passed)
	}
}

// Stop ends all listeners with err, and later ones too, after the events that they can have.
func (h *Hub[E]) Stop(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause == nil {
		h.cause = err
	}
	h.all.wake()
	for _, t := range h.topics {
		t.wake()
	}
}

// Topics returns how many classes and objects have a list of their own.
func (h *Hub[E]) Topics() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.topics)
}

// settle brings on up to date. Without the ring and without topics it drops all entries, because
// no listener can come back to them. The caller holds mu.
func (h *Hub[E]) settle() {
	h.on.Store(h.ring || len(h.topics) > 0)
	if !h.on.Load() {
		h.all.queue, h.bytes, h.pending, h.late = queue[*Entry[E]]{}, 0, 0, 0
		h.all.floor, h.durable = h.newest, h.newest
	}
}

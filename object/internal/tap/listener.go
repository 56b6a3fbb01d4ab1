package tap

import (
	"sort"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// Listener reads the events of one topic, from a position on. Its methods but Close are for one
// goroutine at a time.
type Listener[E any] struct {
	hub    *Hub[E]
	key    storage.ID // without a name: a class; without both: all
	topic  *topic[E]  // nil once it is closed
	cursor uint64     // it has had all events up to here
}

// Listen returns a listener to an object, to a class (an id without a name) or to all events (the
// zero id). It begins with the events that enter from now on. The caller calls Close.
func (h *Hub[E]) Listen(key storage.ID) *Listener[E] {
	h.mu.Lock()
	defer h.mu.Unlock()
	if key.Name == "" {
		h.wide++
		h.begin()
	}
	l := &Listener[E]{hub: h, key: key, topic: h.topicOf(key), cursor: h.newest}
	l.topic.listeners++
	h.on.Store(true)
	return l
}

// begin lets all events enter from now on. The caller holds mu.
func (h *Hub[E]) begin() {
	if !h.ring {
		h.ring = true
		h.newest = h.config.Position()
		h.all.floor = h.newest
	}
}

// topicOf returns a topic, and makes it for its first listener. The one of a class lists all
// that the ring has of it. The one of an object begins now, because its listeners read earlier
// events from the store. The caller holds mu.
func (h *Hub[E]) topicOf(key storage.ID) *topic[E] {
	if key == (storage.ID{}) {
		return &h.all
	}
	t := h.topics[key]
	if t != nil {
		return t
	}
	t = &topic[E]{floor: h.newest}
	if key.Name == "" {
		t.floor = h.all.floor
		for i := range h.all.queue.len() {
			if e := h.all.queue.at(i); e.ID.Class == key.Class && e.Position > t.floor {
				t.queue.push(e)
			}
		}
	}
	h.topics[key] = t
	return t
}

// From makes the listener go on behind a position that it, or another to the same topic, has had.
// If the position is not in the ring any more, or is of an earlier process, Take returns ErrGap.
func (l *Listener[E]) From(position uint64) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if l.cursor = position; position > l.hub.newest {
		l.cursor = 0 // no position of this process
	}
}

// FromNow makes the listener go on with the events that enter from now on.
func (l *Listener[E]) FromNow() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	l.cursor = l.hub.newest
}

// Position is where the listener stands: it has had all events of its topic up to there.
func (l *Listener[E]) Position() uint64 {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	return l.cursor
}

// Take returns the next durable events, at most limit and not much more than bytes. If there are
// none it returns a channel that is closed when it is worth another look, or why the host has
// ended. After ErrGap the listener stands still.
func (l *Listener[E]) Take(limit, bytes int) ([]*Entry[E], <-chan struct{}, error) {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	t := l.topic
	if l.cursor < t.floor {
		return nil, nil, ErrGap
	}
	first := sort.Search(t.queue.len(), func(i int) bool { return t.queue.at(i).Position > l.cursor })
	out := make([]*Entry[E], 0, min(limit, t.queue.len()-first))
	for i := first; i < t.queue.len() && len(out) < limit && bytes > 0; i++ {
		e := t.queue.at(i)
		if e.Position > h.durable {
			break
		}
		out = append(out, e)
		bytes -= e.Bytes
	}
	if len(out) > 0 {
		l.cursor = out[len(out)-1].Position
		return out, nil, nil
	}
	l.cursor = max(l.cursor, h.durable) // the topic has nothing up to there
	if h.cause != nil {
		return nil, nil, h.cause
	}
	if t.told == nil {
		t.told = make(chan struct{})
	}
	return nil, t.told, nil
}

// Close ends the listener, at a time that is now. The last listener to a topic removes it. A second
// Close does nothing.
func (l *Listener[E]) Close(now time.Time) {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	t := l.topic
	if t == nil {
		return
	}
	l.topic = nil
	t.listeners--
	if l.key.Name == "" {
		if h.wide--; h.wide == 0 {
			h.leftAt = now
		}
	}
	if t.listeners == 0 && t != &h.all {
		delete(h.topics, l.key)
		h.settle()
	}
}

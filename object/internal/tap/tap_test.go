package tap

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "github.com/holdfast-dev/holdfast/internal/testing/seeds"
	"github.com/holdfast-dev/holdfast/storage"
)

// disk is a store of which a test says how far it is durable.
type disk struct {
	durable  storage.Ticket
	position uint64
	waiting  []waiter
}

type waiter struct {
	ticket storage.Ticket
	do     func(error)
}

func (d *disk) hub() *Hub[string] {
	return New[string](Config{
		Durable: func(t storage.Ticket) bool { return t <= d.durable },
		After: func(t storage.Ticket, do func(error)) {
			d.waiting = append(d.waiting, waiter{t, do})
			d.sync(d.durable)
		},
		Position: func() uint64 { d.position += 3; return d.position },
	})
}

// sync makes commits durable and does the steps that waited for them.
func (d *disk) sync(to storage.Ticket) {
	d.durable = max(d.durable, to)
	for i := 0; i < len(d.waiting); {
		if w := d.waiting[i]; w.ticket <= d.durable {
			d.waiting = slices.Delete(d.waiting, i, i+1)
			w.do(nil)
			i = 0
			continue
		}
		i++
	}
}

// fail ends all waits with an error.
func (d *disk) fail(err error) {
	for len(d.waiting) > 0 {
		w := d.waiting[0]
		d.waiting = d.waiting[1:]
		w.do(err)
	}
}

// events returns events from a number on.
func events(seq, n, bytes int) (out []Event[string]) {
	for i := range n {
		out = append(out, Event[string]{Seq: uint64(seq + i), Bytes: bytes, Value: fmt.Sprint(seq + i)})
	}
	return out
}

// seqs are the numbers of all that a listener can take, and the error that ends it.
func seqs(l *Listener[string]) (out []uint64, err error) {
	for {
		entries, news, err := l.Take(100, 1<<20)
		if err != nil || news != nil {
			return out, err
		}
		for _, e := range entries {
			out = append(out, e.Seq)
		}
	}
}

var (
	all   = storage.ID{}
	class = storage.ID{Class: "c"}
	a     = storage.ID{Class: "c", Name: "a"}
	b     = storage.ID{Class: "c", Name: "b"}
	other = storage.ID{Class: "d", Name: "a"}
	begin = time.Unix(1000, 0)
)

func expect(t *testing.T, l *Listener[string], err error, want ...uint64) {
	t.Helper()
	if got, bad := seqs(l); !slices.Equal(got, want) || !errors.Is(bad, err) {
		t.Errorf("got %d, %v; want %d, %v", got, bad, want, err)
	}
}

// Proves V8: an event waits for its own commit and for those of all events before it, which may
// have later tickets.
func TestNothingBeforeItIsDurable(t *testing.T) {
	d := &disk{}
	h := d.hub()
	l := h.Listen(all)
	_, news, _ := l.Take(1, 1)
	h.Enter(a, 6, events(1, 1, 1))
	h.Enter(b, 5, events(2, 1, 1)) // its commit was first, and it enters second
	h.Enter(a, 7, events(3, 1, 1))
	d.sync(5)
	select {
	case <-news:
		t.Error("V8: the listener was woken before the first event was durable")
	default:
	}
	expect(t, l, nil)
	d.sync(6)
	<-news
	expect(t, l, nil, 1, 2)
	d.sync(7)
	expect(t, l, nil, 3)
	if len(d.waiting) != 0 {
		t.Errorf("%d steps wait for a disk that has all", len(d.waiting))
	}
}

// Proves V8: a store that has failed shows nothing any more, and no step waits for it.
func TestFailedStore(t *testing.T) {
	d := &disk{}
	h := d.hub()
	l := h.Listen(all)
	h.Enter(a, 1, events(1, 1, 1))
	h.Enter(a, 2, events(2, 1, 1))
	d.sync(1)
	broken := errors.New("broken")
	d.fail(broken)
	if len(d.waiting) != 0 {
		t.Error("a step waits for a store that has failed")
	}
	expect(t, l, nil, 1)
	h.Stop(broken)
	expect(t, l, broken)
	expect(t, h.Listen(a), broken)
}

// Proves V7: the ring keeps its bounds, and a listener at the end of it is told if it is one
// event behind. One to a quiet class stays where it is.
func TestBoundsOfTheRing(t *testing.T) {
	for name, c := range map[string]struct{ n, bytes int }{
		"events": {MaxEvents, 1},
		"bytes":  {16, MaxBytes / 16},
	} {
		t.Run(name, func(t *testing.T) {
			d := &disk{durable: 1}
			h := d.hub()
			slow, quiet := h.Listen(all), h.Listen(storage.ID{Class: "d"})
			h.Enter(a, 1, events(1, c.n, c.bytes))
			if got, _, err := slow.Take(1, 1); len(got) != 1 || err != nil {
				t.Fatalf("a listener that is %d behind got %d events, %v", c.n, len(got), err)
			}
			slow.From(got0(h))
			h.Enter(a, 1, events(c.n+1, 1, c.bytes))
			expect(t, slow, ErrGap)
			expect(t, slow, ErrGap)
			expect(t, quiet, nil)
			h.Enter(other, 1, events(1, 1, 1))
			expect(t, quiet, nil, 1)
			if h.all.queue.len() > MaxEvents || h.bytes > MaxBytes {
				t.Errorf("the ring has %d events, %d bytes", h.all.queue.len(), h.bytes)
			}
		})
	}
}

// got0 is the position at which the ring began.
func got0(h *Hub[string]) uint64 { return h.all.floor }

// Proves V7: listeners to objects alone keep less in memory, and are told of events that are gone.
func TestBoundsOfObjects(t *testing.T) {
	d := &disk{durable: 1}
	h := d.hub()
	l, m := h.Listen(a), h.Listen(b)
	h.Enter(a, 1, events(1, maxObjectEvents, 1))
	got, err := seqs(l)
	if len(got) != maxObjectEvents || err != nil {
		t.Errorf("got %d events, %v", len(got), err)
	}
	h.Enter(a, 1, events(1, maxObjectEvents+1, 1))
	expect(t, l, ErrGap)
	l.FromNow()
	expect(t, l, nil)
	h.Enter(other, 1, events(1, 1, 1))
	h.Enter(b, 1, events(1, 1, 1))
	expect(t, m, nil, 1)
	if n := h.all.queue.len(); n != maxObjectEvents {
		t.Errorf("%d events are kept, want %d: those of an object without a listener do not enter", n, maxObjectEvents)
	}
}

// An event that leaves the ring before it is durable wakes those that wait for it. Proves V7.
func TestGapWakes(t *testing.T) {
	d := &disk{}
	h := d.hub()
	l := h.Listen(class)
	_, news, _ := l.Take(1, 1)
	h.Enter(a, 1, events(1, 1, MaxBytes+1))
	<-news
	expect(t, l, ErrGap)
	d.sync(1)
	h.Enter(a, 1, events(2, 1, 1))
	l.FromNow()
	h.Enter(a, 1, events(3, 1, 1))
	expect(t, l, nil, 3)
}

// A listener comes back to its place within Linger, and is told of a gap after that, or with
// the position of another process. Proves V7, V9.
func TestLinger(t *testing.T) {
	d, at := &disk{durable: 1}, begin
	h := d.hub()
	if h.On() || h.Wants(a, at) {
		t.Error("events enter a hub without a listener")
	}
	early := d.position
	l := h.Listen(class)
	again := func(want error, seqs ...uint64) {
		t.Helper()
		place := l.Position()
		l.Close(at)
		l.Close(at.Add(time.Hour)) // does nothing
		if h.Topics() != 0 {
			t.Errorf("V9: %d topics are left", h.Topics())
		}
		switch at = at.Add(Linger); want {
		case ErrGap:
			at = at.Add(1)
			if h.Wants(a, at) || h.On() || h.all.queue.len() != 0 || h.bytes != 0 {
				t.Error("V9: the ring goes on without a listener")
			}
		default:
			if !h.On() || !h.Wants(a, at) {
				t.Error("the ring has ended too early")
			}
			h.Enter(a, 1, events(int(seqs[0]), 1, 1))
		}
		l = h.Listen(class)
		l.From(place)
		expect(t, l, want, seqs...)
	}
	again(nil, 7)
	again(nil, 8)
	again(ErrGap)
	for _, wrong := range []uint64{0, early, d.position + 1, ^uint64(0)} {
		l.From(wrong)
		expect(t, l, ErrGap)
	}
	l.From(l.hub.newest)
	expect(t, l, nil)
}

// A list of a class that is made late has the events of the class in the ring. Proves V7.
func TestLateTopic(t *testing.T) {
	d := &disk{durable: 1}
	h := d.hub()
	l := h.Listen(all)
	place := l.Position()
	h.Enter(a, 1, events(1, 2, 1))
	h.Enter(other, 1, events(3, 1, 1))
	h.Enter(b, 1, events(4, 1, 1))
	c := h.Listen(class)
	expect(t, c, nil)
	c.From(place)
	expect(t, c, nil, 1, 2, 4)
	o := h.Listen(a)
	h.Enter(a, 1, events(5, 1, 1))
	expect(t, o, nil, 5)
	expect(t, c, nil, 5)
	expect(t, l, nil, 1, 2, 3, 4, 5)
}

// Take keeps its bounds: so many events, and not much more bytes than asked for.
func TestTakeIsBounded(t *testing.T) {
	d := &disk{durable: 1}
	h := d.hub()
	l := h.Listen(all)
	h.Enter(a, 1, events(1, 10, 100))
	for _, c := range []struct{ limit, bytes, want int }{{3, 1000, 3}, {9, 1, 1}, {9, 101, 2}, {9, 200, 2}, {9, 1000, 2}} {
		if got, _, err := l.Take(c.limit, c.bytes); len(got) != c.want || err != nil {
			t.Errorf("Take(%d, %d) has %d events, %v; want %d", c.limit, c.bytes, len(got), err, c.want)
		}
	}
}

// offered is an event of the model.
type offered struct {
	id  storage.ID
	seq uint64
}

// reader is a listener of the model. It has passed the events before the place at, in the order
// in which they were offered.
type reader struct {
	*Listener[string]
	at int
}

func (r *reader) sees(id storage.ID) bool {
	return r.key == all || r.key == id || r.key == storage.ID{Class: id.Class}
}

// model is a hub beside the list of all events that were offered to it.
type model struct {
	disk
	hub     *Hub[string]
	now     time.Time
	ticket  storage.Ticket
	events  []offered
	lost    int // the events before this place may be gone: some did not enter, or the ring has ended
	readers []*reader
	away    []*reader // that have closed, and may come back
}

const modelBytes = MaxBytes / 64 // of an event: 64 are a full ring, and 4 without one

func (m *model) offer(rt *rapid.T) {
	id := rapid.SampledFrom([]storage.ID{a, b, other}).Draw(rt, "object")
	m.now = m.now.Add(rapid.SampledFrom([]time.Duration{0, Linger / 4, Linger}).Draw(rt, "pause"))
	n := rapid.SampledFrom([]int{1, 2, 30}).Draw(rt, "events")
	first := len(m.events) + 1
	for i := range n {
		m.events = append(m.events, offered{id, uint64(first + i)})
	}
	m.ticket++
	wanted := m.hub.On() && m.hub.Wants(id, m.now)
	if wanted {
		m.hub.Enter(id, m.ticket, events(first, n, modelBytes))
	}
	if !wanted || !m.hub.ring {
		m.lost = len(m.events)
	}
}

func (m *model) listen(rt *rapid.T) {
	if len(m.away) > 0 && rapid.Bool().Draw(rt, "back") {
		r := m.away[0]
		m.away = m.away[1:]
		place := r.cursor
		r.Listener = m.hub.Listen(r.key)
		r.From(place)
		m.readers = append(m.readers, r)
		return
	}
	key := rapid.SampledFrom([]storage.ID{all, class, {Class: "d"}, a, b}).Draw(rt, "key")
	m.readers = append(m.readers, &reader{m.hub.Listen(key), len(m.events)})
}

func (m *model) leave(rt *rapid.T) {
	if len(m.readers) == 0 {
		return
	}
	r := m.readers[0]
	m.readers = m.readers[1:]
	r.Close(m.now)
	if r.key.Name == "" { // the others read the store before they come back
		m.away = append(m.away, r)
	}
}

func (m *model) take(rt *rapid.T) {
	for _, r := range m.readers {
		entries, _, err := r.Take(rapid.IntRange(1, 40).Draw(rt, "limit"), MaxBytes)
		if errors.Is(err, ErrGap) {
			if r.at >= m.lost && len(m.events)-r.at <= 64 {
				rt.Fatalf("V7: %v misses events, but all behind %d are in the ring", r.key, r.at)
			}
			r.FromNow()
			r.at = len(m.events)
			continue
		}
		for _, e := range entries {
			for !r.sees(m.events[r.at].id) {
				r.at++
			}
			if want := m.events[r.at]; e.ID != want.id || e.Seq != want.seq {
				rt.Fatalf("V7: %v got event %d of %v, want %d of %v", r.key, e.Seq, e.ID, want.seq, want.id)
			}
			if e.ticket > m.durable {
				rt.Fatalf("V8: %v got an event of commit %d, durable are those up to %d", r.key, e.ticket, m.durable)
			}
			r.at++
		}
		if len(entries) > 0 || m.durable < m.ticket {
			continue
		}
		for ; r.at < len(m.events); r.at++ {
			if r.sees(m.events[r.at].id) {
				rt.Fatalf("V7: %v did not get event %d of %v", r.key, m.events[r.at].seq, m.events[r.at].id)
			}
		}
	}
}

// Listeners come and go, events enter and become durable, and each listener gets each event of its
// topic once, in order and durable, or is told that it has missed some. Proves V7, V8.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{now: begin}
		m.hub = m.disk.hub()
		rt.Repeat(map[string]func(*rapid.T){
			"offer":  m.offer,
			"offer2": m.offer,
			"listen": m.listen,
			"leave":  m.leave,
			"take":   m.take,
			"sync": func(rt *rapid.T) {
				m.sync(m.ticket - storage.Ticket(rapid.IntRange(0, min(2, int(m.ticket))).Draw(rt, "late")))
			},
			"": m.bounds(rt),
		})
		for _, r := range m.readers {
			r.Close(m.now)
		}
		m.hub.Wants(a, m.now.Add(Linger+1))
		if m.hub.On() || m.hub.Topics() != 0 || m.hub.all.queue.len() != 0 || m.hub.bytes != 0 {
			rt.Fatalf("V9: something is left: %d topics, %d events", m.hub.Topics(), m.hub.all.queue.len())
		}
	})
}

func (m *model) bounds(*rapid.T) func(*rapid.T) {
	return func(rt *rapid.T) {
		bytes, n := 0, m.hub.all.queue.len()
		for i := range n {
			bytes += m.hub.all.queue.at(i).Bytes
		}
		if bytes != m.hub.bytes || bytes > MaxBytes || n > MaxEvents || m.hub.pending > n {
			rt.Fatalf("%d events, %d of them pending, %d bytes, counted as %d", n, m.hub.pending, bytes, m.hub.bytes)
		}
	}
}

// A ring that begins while objects have events in memory begins at its own place, also when
// those events leave. Proves V7.
func TestRingBeginsBehindObjects(t *testing.T) {
	d := &disk{durable: 1}
	h := d.hub()
	o := h.Listen(a)
	h.Enter(a, 1, events(1, 1, 1))
	old := d.position
	h.Enter(b, 1, events(1, 1, 1)) // does not enter
	l := h.Listen(all)
	l.From(old)
	expect(t, l, ErrGap)
	l.FromNow()
	place := l.Position()
	h.Enter(b, 1, events(2, 1, 1))
	h.mu.Lock()
	h.forget() // the first event of a
	h.mu.Unlock()
	expect(t, o, ErrGap)
	l.From(old)
	expect(t, l, ErrGap)
	l.From(place)
	expect(t, l, nil, 2)
}

// The ring ends, and only as much stays in memory as listeners to objects need. Proves V9.
func TestRingEndsBesideObjects(t *testing.T) {
	d := &disk{durable: 1}
	h := d.hub()
	l, o := h.Listen(class), h.Listen(a)
	h.Enter(b, 1, events(1, maxObjectEvents+10, 1))
	l.Close(begin)
	if !h.Wants(b, begin.Add(Linger)) || h.Wants(b, begin.Add(Linger+1)) || !h.Wants(a, begin.Add(Linger+1)) {
		t.Error("the ring does not end a minute after its last listener")
	}
	if n := h.all.queue.len(); n != maxObjectEvents {
		t.Errorf("%d events are kept, want %d", n, maxObjectEvents)
	}
	h.Enter(a, 1, events(1, 1, 1))
	expect(t, o, nil, 1)
}

// The place of a listener moves on with the events of others, so that it can come back later
// than they can leave the ring. Proves V7.
func TestPositionMovesOn(t *testing.T) {
	d := &disk{durable: 1}
	h := d.hub()
	l := h.Listen(class)
	h.Enter(other, 1, events(1, 1, 1))
	old := l.Position()
	expect(t, l, nil)
	if got := l.Position(); got != h.newest || got == old {
		t.Errorf("the place is %d, want %d", got, h.newest)
	}
	h.Enter(other, 2, events(2, 1, 1)) // not durable
	expect(t, l, nil)
	if got := l.Position(); got >= h.newest {
		t.Errorf("the place %d is behind an event that is not durable", got)
	}
}

// Package inbox knows which messages are on their way to each receiver, and which receivers
// have others that wait on disk. It is the bookkeeping alone: it reads no store, runs no
// turn and starts no goroutine. Its caller hands messages to objects and reads stored ones,
// as the results of its methods say.
//
// A message that a commit has sent is handed over at once, if its receiver has no backlog
// and few messages under way. Otherwise the receiver gets a backlog: its messages stay on
// disk, and new ones join them, until a reader has handed over all that were stored. So the
// order of messages is kept, and a slow receiver takes little memory.
//
//	no box ⇄ under way ⇄ backlog → paused → backlog
package inbox

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/storage"
)

// Message is a message that is on its way to its receiver.
type Message struct {
	storage.MessageID
	Bytes int // that it takes in memory
	// Alone says that the message is handed over when no other is under way to its receiver,
	// and that none follows before it has landed or its turn is lent out. The caller of Take
	// sets it.
	Alone bool
	Begun bool // its handler has begun; the owner of its receiver's turn sets it
	lent  bool // Lend was called; the mutex of the stripe guards it
	place atomic.Uint32
}

// The place of a message that is on its way, from one that is under way.
const (
	inPlace   uint32 = iota
	withdrawn        // a Pause, a Suspend or a Hold has withdrawn it
	detached         // it is not under way any more, because its activation has ended
)

// Withdrawn reports whether the message must not be handled, because one before it waits.
// It stays stored, and a reader brings it again.
func (m *Message) Withdrawn() bool { return m.place.Load() != inPlace }

// Detached reports whether a reader may have brought the message again, so that nothing may be
// stored for this one.
func (m *Message) Detached() bool { return m.place.Load() == detached }

// Bounds of the messages under way: to one receiver, and in a host. One message is always let
// through to a receiver, however large it is.
const (
	MaxMessages  = 64
	MaxBytes     = 256 << 10
	MaxHostBytes = 64 << 20
	// overheadBytes is the memory of a message under way beside its argument: its request
	// and its turn.
	overheadBytes = 1 << 10
	// readBelow is how many messages may be under way when more are read.
	readBelow = MaxMessages / 2
)

// Inboxes has a box for each receiver that has messages under way or a backlog. The zero
// value is empty. Its methods may be called from any goroutine. A mutex serves a part of
// the receivers; nothing waits while it is held.
type Inboxes struct {
	stripes [64]stripe
	bytes   atomic.Int64 // under way in the host

	mu     sync.Mutex
	hungry []Receiver // with a backlog for which the host had no room; guarded by mu
}

// Receiver is an object to which messages are sent, with its shard.
type Receiver struct {
	storage.ID
	Shard int
}

// Receiver returns the receiver of the message.
func (m *Message) Receiver() Receiver { return Receiver{m.To, m.Shard} }

// stripe is the boxes of some receivers.
type stripe struct {
	mu    sync.Mutex
	boxes map[storage.ID]*box
}

// box is one receiver. The mutex of its stripe guards it.
type box struct {
	to      Receiver
	under   []*Message // under way
	bytes   int        // of those
	lone    *Message   // the one of those that goes alone and has not lent its turn out; nil: none
	backlog bool       // messages wait on disk, and new ones join them
	reading bool       // a reader is at work, or its caller was told to start one
	stale   bool       // messages that the reader has passed wait again, so it must begin anew
	paused  bool       // nothing is read until Resume, because a message could not be handled
	drains  bool       // messages that were withdrawn are under way still
	full    bool       // a reader has found no room beside those under way, and none has landed since
	starved bool       // a reader has found no room in the host
	lent    uint8      // messages under way that went alone and have lent their turn out: at most MaxMessages
	waiting int        // messages on disk that are not under way, as far as is known
	holds   int        // how many Holds keep the messages back
	pauses  int        // in a row
	reason  error      // of the pause
	// from is where the reader goes on, and joined the greatest number of a message that has joined the backlog.
	from, joined [storage.Queues]uint64
}

func (s *Inboxes) stripe(to Receiver) *stripe { return &s.stripes[to.Shard%len(s.stripes)] }

// Arrive takes a message that a commit has sent, and reports whether the caller hands it
// over now. If not, it waits on disk.
func (s *Inboxes) Arrive(m *Message) (now bool) {
	m.Bytes += overheadBytes
	st := s.stripe(m.Receiver())
	st.mu.Lock()
	defer st.mu.Unlock()
	b := st.box(m.Receiver())
	if !b.backlog && s.fits(b, m) {
		s.add(b, m)
		return true
	}
	s.wait(b, m)
	return false
}

// Wait has a message that a commit has sent wait on disk, as if the host had no room for it.
func (s *Inboxes) Wait(m *Message) {
	st := s.stripe(m.Receiver())
	st.mu.Lock()
	defer st.mu.Unlock()
	s.wait(st.box(m.Receiver()), m)
}

// wait begins a backlog, unless there is one, and adds the message to it.
func (s *Inboxes) wait(b *box, m *Message) {
	if !b.backlog {
		b.begin(m.Seq)
		if len(b.under) == 0 {
			s.starve(b.to)
		}
	}
	b.join(m)
}

// box returns the box of a receiver, and makes it if there is none. The caller holds mu.
func (st *stripe) box(to Receiver) *box {
	b := st.boxes[to.ID]
	if b == nil {
		if st.boxes == nil {
			st.boxes = make(map[storage.ID]*box)
		}
		b = &box{to: to}
		st.boxes[to.ID] = b
	}
	return b
}

// begin begins a backlog of messages with the number from and greater ones.
func (b *box) begin(from uint64) {
	b.backlog = true
	for q := range b.from {
		b.from[q], b.joined[q] = from, 0
	}
}

// join adds a message to those that wait on disk. A reader begins before it, also if a
// commit with a greater number was handed over earlier.
func (b *box) join(m *Message) {
	b.waiting++
	b.from[m.Queue] = min(b.from[m.Queue], m.Seq)
	b.joined[m.Queue] = max(b.joined[m.Queue], m.Seq)
}

// fits reports whether a message may be under way beside the others.
func (s *Inboxes) fits(b *box, m *Message) bool {
	if b.lone != nil || m.Alone && len(b.under) > int(b.lent) {
		return false
	}
	if s.bytes.Load()+int64(m.Bytes) > MaxHostBytes && s.bytes.Load() > 0 {
		return false
	}
	return len(b.under) == 0 || len(b.under) < MaxMessages && b.bytes+m.Bytes <= MaxBytes
}

func (s *Inboxes) add(b *box, m *Message) {
	b.under = append(b.under, m)
	if m.Alone {
		b.lone = m
	}
	b.bytes += m.Bytes
	s.bytes.Add(int64(m.Bytes))
}

// starve notes that a receiver waits for room in the host.
func (s *Inboxes) starve(to Receiver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hungry = append(s.hungry, to)
}

// Hungry reports whether receivers wait for room in the host. The caller calls Feed a
// little later then.
func (s *Inboxes) Hungry() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.hungry) > 0
}

// Feed returns up to limit receivers for which the host has room now, and for which the
// caller starts a reader.
func (s *Inboxes) Feed(limit int) (read []Receiver) {
	s.mu.Lock()
	var next []Receiver
	if s.bytes.Load() <= MaxHostBytes/2 {
		next = s.hungry[:min(limit, len(s.hungry))]
		s.hungry = s.hungry[len(next):]
	}
	s.mu.Unlock()
	for _, to := range next {
		st := s.stripe(to)
		st.mu.Lock()
		if b := st.boxes[to.ID]; b != nil && b.mayRead() {
			b.reading = true
			read = append(read, to)
		}
		st.mu.Unlock()
	}
	return read
}

// Land notes that a message is not under way any more: it was handled, or it was withdrawn,
// or an attempt has failed and its state is stored. handled says that the receiver handles
// messages, so that its next pause is a short one. It reports whether the caller starts a
// reader for the receiver.
func (s *Inboxes) Land(m *Message, handled bool) (read bool) {
	st := s.stripe(m.Receiver())
	st.mu.Lock()
	defer st.mu.Unlock()
	if m.Detached() {
		return false
	}
	b := st.boxes[m.To]
	for i, u := range b.under {
		if u == m {
			last := len(b.under) - 1
			b.under[i], b.under[last] = b.under[last], nil
			b.under = b.under[:last]
			b.bytes -= m.Bytes
			s.bytes.Add(-int64(m.Bytes))
			break
		}
	}
	switch {
	case b.lone == m:
		b.lone = nil
	case m.lent:
		b.lent--
	}
	b.full = false
	if handled {
		b.pauses = 0
		if m.Withdrawn() { // it was counted as one that waits, and is none
			b.waiting = max(0, b.waiting-1)
		}
	}
	read = b.mayRead()
	b.reading = b.reading || read
	st.tidy(b)
	return read
}

// Lend notes that the handler of a message lends its turn out, so that the next message may be
// handed over, also if this one goes alone. It reports whether the caller starts a reader.
func (s *Inboxes) Lend(m *Message) (read bool) {
	st := s.stripe(m.Receiver())
	st.mu.Lock()
	defer st.mu.Unlock()
	b := st.boxes[m.To]
	if m.Detached() || b.lone != m {
		return false
	}
	m.lent = true
	b.lone, b.full = nil, false
	b.lent++
	read = b.mayRead()
	b.reading = b.reading || read
	return read
}

// mayRead reports whether a reader should begin. After a Pause it begins when no withdrawn
// message is under way, because a reader passes over those that are.
func (b *box) mayRead() bool {
	return b.backlog && !b.halted() && !b.reading && !b.draining() && b.lone == nil && !b.full && len(b.under) <= readBelow
}

// halted reports whether nothing may be read for now.
func (b *box) halted() bool { return b.paused || b.holds > 0 }

// draining reports whether messages that were withdrawn are under way still.
func (b *box) draining() bool {
	b.drains = b.drains && slices.ContainsFunc(b.under, (*Message).Withdrawn)
	return b.drains
}

// tidy drops a box that holds nothing. The caller holds mu.
func (st *stripe) tidy(b *box) {
	if !b.backlog && len(b.under) == 0 {
		delete(st.boxes, b.to.ID)
	}
}

// Found notes that n messages of earlier openings are stored for a receiver. It reports
// whether the caller starts a reader. A receiver that has a box is known already.
func (s *Inboxes) Found(to Receiver, n int) (read bool) {
	st := s.stripe(to)
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.boxes[to.ID] != nil {
		return false
	}
	b := st.box(to)
	b.begin(0)
	b.waiting, b.reading = n, true
	return true
}

// Known reports whether a receiver has a box.
func (s *Inboxes) Known(to Receiver) bool {
	st := s.stripe(to)
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.boxes[to.ID] != nil
}

// Waiting returns how many messages of a receiver wait on disk, as far as is known, and why
// it is paused; nil if it is not.
func (s *Inboxes) Waiting(to Receiver) (n int, reason error) {
	st := s.stripe(to)
	st.mu.Lock()
	defer st.mu.Unlock()
	b := st.boxes[to.ID]
	switch {
	case b == nil || !b.backlog:
		return 0, nil
	case b.paused:
		reason = b.reason
	}
	return b.waiting, reason
}

// Sum returns how many messages are under way, how many wait on disk for the receivers that
// have a backlog, and how many receivers are paused.
func (s *Inboxes) Sum() (under, waiting, paused int) {
	for i := range s.stripes {
		st := &s.stripes[i]
		st.mu.Lock()
		for _, b := range st.boxes {
			under += len(b.under)
			waiting += b.waiting
			if b.paused {
				paused++
			}
		}
		st.mu.Unlock()
	}
	return under, waiting, paused
}

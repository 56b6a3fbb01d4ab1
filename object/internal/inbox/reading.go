package inbox

import "github.com/holdfast-dev/holdfast/storage"

// Reading is where a reader begins, and which messages it passes over because they are
// under way.
type Reading struct {
	From  [storage.Queues]uint64
	under map[uint64]bool
}

// Under reports whether the message with a number was under way when the reading began.
func (r *Reading) Under(seq uint64) bool { return r.under[seq] }

// Begin begins a reading of a receiver's stored messages. The caller makes its snapshot of
// the store after it. ok is false if nothing is to be read any more.
func (s *Inboxes) Begin(to Receiver) (r Reading, ok bool) {
	st := s.stripe(to)
	st.mu.Lock()
	defer st.mu.Unlock()
	b := st.boxes[to.ID]
	if b == nil {
		return r, false
	}
	b.stale, b.starved = false, false
	if b.halted() || !b.backlog || b.draining() {
		b.reading = false
		return r, false
	}
	r = Reading{From: b.from, under: make(map[uint64]bool, len(b.under))}
	for _, m := range b.under {
		r.under[m.Seq] = true
	}
	return r, true
}

// Take makes a message that was read one that is under way. It reports false if there is no
// room, or if messages that the reader has passed wait again, after a Pause or a Detach; the
// reader stops then.
func (s *Inboxes) Take(m *Message) bool {
	m.Bytes += overheadBytes
	st := s.stripe(m.Receiver())
	st.mu.Lock()
	defer st.mu.Unlock()
	b := st.boxes[m.To]
	if b.stale {
		return false
	}
	if !s.fits(b, m) {
		b.full, b.starved = len(b.under) > 0, len(b.under) == 0
		return false
	}
	s.add(b, m)
	b.from[m.Queue] = m.Seq + 1
	b.waiting--
	return true
}

// Next is the step after a reading.
type Next int

const (
	Rest  Next = iota // nothing: Land or Resume tells of the next reading, or the backlog has ended
	Again             // a reading at once
	Later             // a reading a little later, because a commit that sends is under way
)

// End ends a reading. upper is storage.Store.MessagesBelow as the reader has used it, and
// whole says that it has read all messages before that.
func (s *Inboxes) End(to Receiver, upper uint64, whole bool) Next {
	st := s.stripe(to)
	st.mu.Lock()
	defer st.mu.Unlock()
	b := st.boxes[to.ID]
	b.reading = false
	stale := b.stale
	if whole && !stale {
		for q := range b.from {
			b.from[q] = max(b.from[q], upper)
		}
		if b.joinedBelow(upper) {
			b.backlog, b.waiting = false, 0
			st.tidy(b)
			return Rest
		}
	}
	switch {
	case !b.mayRead():
		return Rest
	case stale:
	case whole:
		b.reading = true
		return Later
	case b.starved && len(b.under) == 0:
		s.starve(to)
		return Rest
	}
	b.reading = true
	return Again
}

// joinedBelow reports whether no message with the number upper or a greater one has joined.
func (b *box) joinedBelow(upper uint64) bool {
	for _, seq := range b.joined {
		if seq >= upper {
			return false
		}
	}
	return true
}

package inbox

import (
	"math"
	"slices"
)

// Pause keeps all messages of a receiver back until Resume, because the message m could not
// be handled and the order is kept. Those that are under way are withdrawn. It returns how
// many pauses the receiver has had in a row, from 1 on, or 0 if it is paused already or m is
// detached.
func (s *Inboxes) Pause(m *Message, reason error) (pauses int) {
	st := s.stripe(m.Receiver())
	st.mu.Lock()
	defer st.mu.Unlock()
	if m.Detached() {
		return 0
	}
	b := st.boxes[m.To]
	if !b.pause(reason, b.under) {
		return 0
	}
	b.pauses++
	return b.pauses
}

// Suspend is a Pause in which no message has failed: it counts as none of those in a row. Messages that have begun stay under
// way, because they may wait for those behind them. It reports whether the caller is to call Resume. The owner of the
// receiver's turn calls it.
func (s *Inboxes) Suspend(m *Message, reason error) (paused bool) {
	st := s.stripe(m.Receiver())
	st.mu.Lock()
	defer st.mu.Unlock()
	if m.Detached() {
		return false
	}
	b := st.boxes[m.To]
	return b.pause(reason, slices.DeleteFunc(slices.Clone(b.under), func(u *Message) bool { return u.Begun }))
}

// pause keeps the messages of the box back, of which some were under way. It reports whether they were not kept back before.
func (b *box) pause(reason error, under []*Message) bool {
	b.withdraw(under, withdrawn)
	b.reason, b.drains = reason, true
	before := b.paused
	b.paused = true
	return !before
}

// withdraw has messages under way wait on disk again, before all others, and gives them
// their new place.
func (b *box) withdraw(under []*Message, place uint32) {
	if !b.backlog {
		b.begin(math.MaxUint64)
	}
	for _, u := range under {
		if u.place.Swap(place) == inPlace {
			b.join(u)
		}
	}
	b.stale = b.stale || b.reading
}

// Detach ends the way of all messages under way to a receiver, because the activation that
// has them has ended and cannot commit any more. They wait on disk again, before all
// others. It reports whether the caller starts a reader. The caller keeps out every commit
// of the ended activation before it calls Detach, and begins no other activation until it
// has returned, because a later message must not pass the detached ones.
func (s *Inboxes) Detach(to Receiver) (read bool) {
	st := s.stripe(to)
	st.mu.Lock()
	defer st.mu.Unlock()
	b := st.boxes[to.ID]
	if b == nil || len(b.under) == 0 {
		return false
	}
	b.withdraw(b.under, detached)
	s.bytes.Add(-int64(b.bytes))
	b.under, b.bytes = nil, 0
	b.lone, b.lent, b.full = nil, 0, false
	read = b.mayRead()
	b.reading = b.reading || read
	return read
}

// Resume ends a pause, and reports whether the caller starts a reader now. If messages of
// before the pause are under way still, Land tells of the reader.
func (s *Inboxes) Resume(to Receiver) (read bool) {
	st := s.stripe(to)
	st.mu.Lock()
	defer st.mu.Unlock()
	b := st.boxes[to.ID]
	if b == nil || !b.paused {
		return false
	}
	b.paused = false
	read = b.mayRead()
	b.reading = b.reading || read
	return read
}

// Hold keeps all messages of a receiver back until Release, for example because they are to
// be deleted. Those that are under way are withdrawn. Holds may nest, and a pause may begin
// and end meanwhile.
func (s *Inboxes) Hold(to Receiver) {
	st := s.stripe(to)
	st.mu.Lock()
	defer st.mu.Unlock()
	fresh := st.boxes[to.ID] == nil
	b := st.box(to)
	if fresh { // messages of an earlier opening may not be counted yet, so the reader after Release looks at all
		b.begin(0)
	}
	b.withdraw(b.under, withdrawn)
	b.drains = true
	b.holds++
}

// Held reports whether a Hold keeps the messages of a receiver back.
func (s *Inboxes) Held(to Receiver) bool {
	st := s.stripe(to)
	st.mu.Lock()
	defer st.mu.Unlock()
	b := st.boxes[to.ID]
	return b != nil && b.holds > 0
}

// Removed notes that n messages of a receiver which waited on disk are gone. The caller has a Hold on it.
func (s *Inboxes) Removed(to Receiver, n int) {
	st := s.stripe(to)
	st.mu.Lock()
	defer st.mu.Unlock()
	b := st.boxes[to.ID]
	b.waiting = max(0, b.waiting-n) // those of an earlier opening may not be counted yet
}

// Release ends a Hold, and reports whether the caller starts a reader now. If messages of
// before the Hold are under way still, Land tells of the reader.
func (s *Inboxes) Release(to Receiver) (read bool) {
	st := s.stripe(to)
	st.mu.Lock()
	defer st.mu.Unlock()
	b := st.boxes[to.ID]
	b.holds--
	read = b.mayRead()
	b.reading = b.reading || read
	return read
}

// Paused calls f with each receiver that is paused, with how many of its messages wait and
// why.
func (s *Inboxes) Paused(f func(to Receiver, waiting int, reason error)) {
	for i := range s.stripes {
		st := &s.stripes[i]
		st.mu.Lock()
		for _, b := range st.boxes {
			if b.paused {
				f(b.to, b.waiting, b.reason)
			}
		}
		st.mu.Unlock()
	}
}

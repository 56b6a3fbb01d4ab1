package inbox

import (
	"cmp"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/storage"
)

// Places is how many messages of the index by time may be under way in a host.
const Places = 256

// Shares divides the places of messages of the index by time among their receivers, so that those
// of slow receivers leave room for others. A receiver always gets one place, and a further one
// only while it has fewer than an eighth of the free places. For example, a receiver alone
// gets 28 places, and two of them 28 and 25.
//
// A message that gets no place is let go: the scheduler drops it, and it waits on disk. Shares keeps
// for the receiver between which moments of the index such messages lie, and so takes the
// same memory however many they are. When half of the receiver's messages under way have
// ended, the caller reads that part of the index again (catching up) and has the scheduler
// fire the first of them:
//
//	Enter: no place → behind → Leave: read → Begin … End → Enter
//
// While messages are behind, a message under way will leave, or a reading is under way, or the
// caller of End has set a timer for Resume. So none is forgotten. The zero value is empty. Its
// methods may be called from any goroutine; nothing waits while the mutex is held.
type Shares struct {
	mu    sync.Mutex
	m     map[storage.ID]*share // of receivers with messages under way or behind
	taken int                   // places, of all receivers
	free  []*share              // to use again
}

// share is the places of one receiver.
type share struct {
	under       []uint64 // the numbers of the messages that have a place
	reading     bool     // the index is read for it
	behind      bool     // messages between first and last were let go
	first, last Moment
	read        Moment // the last reading has found all messages before this, and they get places
}

// Moment is a place in the index by time of one shard.
type Moment struct {
	Due int64
	Seq uint64
}

// Compare orders moments by time, then by number.
func (m Moment) Compare(n Moment) int {
	return cmp.Or(cmp.Compare(m.Due, n.Due), cmp.Compare(m.Seq, n.Seq))
}

// most is how many places a receiver may have now. The caller holds mu.
func (x *Shares) most() int { return max(1, (Places-x.taken)/8) }

// Enter gives a message that is due a place, unless its receiver has enough, or has others before
// it without a place. A message that has a place already keeps it.
func (x *Shares) Enter(to storage.ID, at Moment) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.m[to]
	if s == nil {
		s = x.add(to)
	}
	switch {
	case slices.Contains(s.under, at.Seq):
		return true
	case s.reading, s.behind && at.Compare(s.first) >= 0 && at.Compare(s.read) >= 0, len(s.under) >= x.most():
		s.letGo(at)
		return false
	}
	s.under = append(s.under, at.Seq)
	x.taken++
	return true
}

// add makes the share of a receiver. The caller holds mu.
func (x *Shares) add(to storage.ID) *share {
	if x.m == nil {
		x.m = make(map[storage.ID]*share)
	}
	s := &share{}
	if n := len(x.free); n > 0 {
		s, x.free = x.free[n-1], x.free[:n-1]
	}
	x.m[to] = s
	return s
}

// tidy drops a share that holds nothing. The caller holds mu.
func (x *Shares) tidy(to storage.ID, s *share) {
	if len(s.under) > 0 || s.behind || s.reading {
		return
	}
	delete(x.m, to)
	s.read = Moment{}
	if len(x.free) < Places {
		x.free = append(x.free, s)
	}
}

// letGo notes that a message at a moment waits on disk.
func (s *share) letGo(at Moment) {
	if !s.behind {
		s.behind, s.first, s.last = true, at, at
	}
	if at.Compare(s.first) < 0 {
		s.first = at
	}
	if at.Compare(s.last) > 0 {
		s.last = at
	}
}

// Leave gives back the place of a message, if it has one. It reports whether the caller reads the
// index for the receiver now.
func (x *Shares) Leave(to storage.ID, seq uint64) (read bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.m[to]
	if s == nil {
		return false
	}
	i := slices.Index(s.under, seq)
	if i < 0 {
		return false
	}
	last := len(s.under) - 1
	s.under[i] = s.under[last]
	s.under = s.under[:last]
	x.taken--
	if s.behind && !s.reading && last <= x.most()/2 {
		s.reading = true
		return true
	}
	x.tidy(to, s)
	return false
}

// Begin begins a reading: the caller looks for up to n messages of the receiver from first to
// last that are not Under. Messages that come due meanwhile are let go.
func (x *Shares) Begin(to storage.ID) (first, last Moment, n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.m[to]
	s.behind = false
	return s.first, s.last, max(1, x.most()-len(s.under))
}

// Behind reports whether messages of a receiver wait on disk for one of its places.
func (x *Shares) Behind(to storage.ID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.m[to]
	return s != nil && (s.behind || s.reading)
}

// Under reports whether a message has a place.
func (x *Shares) Under(to storage.ID, seq uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.m[to]
	return s != nil && slices.Contains(s.under, seq)
}

// End ends a reading; more says that the messages from next to last are still to be read. Then the
// caller has the scheduler fire those that it has found. If wait is true, it also calls
// Resume a little later, because none of them may come, for example after a Delete.
func (x *Shares) End(to storage.ID, more bool, next, last Moment) (wait bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.m[to]
	s.reading, s.read = false, next
	if more {
		s.letGo(next)
		s.letGo(last)
	} else {
		s.read = Moment{last.Due, last.Seq + 1}
	}
	x.tidy(to, s)
	return s.behind && len(s.under) == 0
}

// Resume reports whether the caller reads the index for the receiver now, because none of its
// messages is under way.
func (x *Shares) Resume(to storage.ID) (read bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.m[to]
	if s == nil || !s.behind || s.reading || len(s.under) > 0 {
		return false
	}
	s.reading = true
	return true
}

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
// ended, the caller reads that part of the index again (catching up). Those that it has found get
// places at once, and the scheduler fires them:
//
//	Enter: no place → behind → Leave: read → Begin … End: places → Enter
//
// So a message that has had a place does not lie among those that were let go, and is not fired again
// if it stays stored. While messages are behind, a message with a place will leave, or a reading is
// under way, or the caller of End has set a timer for Resume. So none is forgotten. The zero value
// is empty. Its methods may be called from any goroutine; nothing waits while the mutex is held.
type Shares struct {
	mu    sync.Mutex
	m     map[storage.ID]*share // of receivers with messages under way or behind
	taken int                   // places, of all receivers
	free  []*share              // to use again
}

// share is the places of one receiver.
type share struct {
	under       []uint64 // the numbers of the messages that have a place: under way, or to be fired
	reading     bool     // the index is read for it
	behind      bool     // messages between first and last were let go
	first, last Moment
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
	case s.reading, s.behind && at.Compare(s.first) >= 0, len(s.under) >= x.most():
		s.letGo(at)
		return false
	}
	x.place(s, at.Seq)
	return true
}

// place gives a message a place. The caller holds mu.
func (x *Shares) place(s *share, seq uint64) {
	s.under = append(s.under, seq)
	x.taken++
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

// CatchUp is a reading of the index for one receiver: the part that is still to be read, and how many
// messages may be found in it.
type CatchUp struct {
	Next, Last Moment
	Room       int
	under      []uint64
}

// Under reports whether a message had a place when the reading began. The reader passes over it, also
// if it has given its place back meanwhile: the scheduler was told of it then, or is not to fire it.
func (c *CatchUp) Under(seq uint64) bool { return slices.Contains(c.under, seq) }

// Begin begins a reading. Messages that come due meanwhile are let go.
func (x *Shares) Begin(to storage.ID) CatchUp {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.m[to]
	s.behind = false
	return CatchUp{s.first, s.last, max(1, x.most()-len(s.under)), slices.Clone(s.under)}
}

// Behind reports whether messages of a receiver wait on disk for one of its places.
func (x *Shares) Behind(to storage.ID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.m[to]
	return s != nil && (s.behind || s.reading)
}

// End ends a reading that has found some messages, in their order; more says that those from Next to
// Last are still to be read. It gives places to as many as may have one, and has the caller fire those,
// under the mutex: so no attempt of them ends before, and none is fired at a time that it had once.
// If wait is true, the caller calls Resume a little later, because no message with a place will leave.
func (x *Shares) End(to storage.ID, c CatchUp, found []storage.LaterMessage, more bool, fire func(storage.LaterMessage)) (wait bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.m[to]
	s.reading = false
	for _, m := range found {
		if len(s.under) >= x.most() {
			c.Next, more = Moment{m.Due, m.Seq}, true
			break
		}
		x.place(s, m.Seq)
		fire(m)
	}
	if more {
		s.letGo(c.Next)
		s.letGo(c.Last)
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

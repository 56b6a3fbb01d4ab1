package object

import (
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// lru is the activations of a host in the order in which they came, as a clock:
// the hand takes the first, drops it if it has been idle for its time, and else
// puts it last. So a turn only notes its time, and one timer serves all objects.
type lru struct {
	host *Host

	mu    sync.Mutex
	first *activation
	last  *activation
	live  int
	timer seam.Timer // nil: no sweep is planned
}

type lruLinks struct {
	prev, next *activation
	in         bool
}

var errEvicted = errors.New("evicted")

func (l *lru) init(h *Host) { l.host = h }

// now is the time that a turn notes at its end.
func (l *lru) now() int64 { return l.host.seams.Clock.Now().UnixNano() }

// add puts an activation last. Beyond Options.MaxLive it makes room first.
func (l *lru) add(a *activation) {
	a.used.Store(l.now())
	l.mu.Lock()
	l.append(a)
	l.live++
	full := l.live > l.host.options.MaxLive
	if l.timer == nil {
		l.plan()
	}
	l.mu.Unlock()
	if full {
		l.makeRoom()
	}
}

func (l *lru) append(a *activation) {
	a.lru = lruLinks{prev: l.last, in: true}
	if l.last == nil {
		l.first = a
	} else {
		l.last.lru.next = a
	}
	l.last = a
}

func (l *lru) unlink(a *activation) {
	if a.lru.prev == nil {
		l.first = a.lru.next
	} else {
		a.lru.prev.lru.next = a.lru.next
	}
	if a.lru.next == nil {
		l.last = a.lru.prev
	} else {
		a.lru.next.lru.prev = a.lru.prev
	}
	a.lru = lruLinks{}
}

func (l *lru) remove(a *activation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.lru.in {
		l.unlink(a)
		l.live--
	}
}

// size is the number of objects in memory.
func (l *lru) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live
}

// plan arms the timer for the next sweep.
func (l *lru) plan() {
	wait := l.host.options.IdleAfter
	for _, c := range l.host.hosted {
		wait = min(wait, c.options.IdleAfter)
	}
	l.timer = l.host.seams.Clock.AfterFunc(max(wait/2, time.Millisecond), l.sweep)
}

// sweep looks at each object once and drops those that have been idle for their
// time.
func (l *lru) sweep() {
	now := l.now()
	for range l.size() {
		a := l.turnHand()
		if a == nil {
			break
		}
		if now-a.used.Load() >= int64(a.hosted.options.IdleAfter) {
			a.evict()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	if l.live > 0 && !l.host.life.closing.Load() {
		l.plan()
	}
}

// makeRoom drops the object used least recently among those at the hand.
func (l *lru) makeRoom() {
	const looks = 8
	var oldest *activation
	for range looks {
		a := l.turnHand()
		if a != nil && (oldest == nil || a.used.Load() < oldest.used.Load()) {
			oldest = a
		}
	}
	if oldest != nil {
		oldest.evict()
	}
}

// turnHand puts the first activation last and returns it.
func (l *lru) turnHand() *activation {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.first
	if a != nil {
		l.unlink(a)
		l.append(a)
	}
	return a
}

// evict takes an idle activation out of memory. It changes no stored byte.
func (a *activation) evict() {
	a.mu.Lock()
	if a.gone { // it ended before it was added
		a.mu.Unlock()
		a.hosted.drop(a)
		return
	}
	if a.running || a.head != nil || a.holds.Load() > 0 {
		a.mu.Unlock()
		return
	}
	a.gone = true
	life := a.life
	a.mu.Unlock()
	if life != nil {
		life.end(errEvicted)
	}
	a.hosted.drop(a)
	a.hosted.counts.evicted.Add(1)
}

// all yields the activations in the order of the clock.
func (l *lru) all() func(yield func(*activation) bool) {
	l.mu.Lock()
	all := make([]*activation, 0, l.live)
	for a := l.first; a != nil; a = a.lru.next {
		all = append(all, a)
	}
	l.mu.Unlock()
	return func(yield func(*activation) bool) {
		for _, a := range all {
			if !yield(a) {
				return
			}
		}
	}
}

package object

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// lru is the activations of a host in the order in which they came, as a clock:
// the hand takes the first, drops it if it has been idle for its time, and else
// puts it last. One timer serves all objects. It is not armed while no object could
// leave memory: while none is in memory, or all that are have a turn or a work under
// way, however long that takes.
//
// A turn reads no clock: it only notes the tick in which it ended. Ticks tell
// which object was used last, and whether one was used since the last sweep.
type lru struct {
	host *Host
	tick atomic.Uint64 // grows with each object that comes and with each sweep

	swept uint64 // the tick in which the last sweep began; only sweeps use it

	mu    sync.Mutex
	first *activation
	last  *activation
	live  int
	timer seam.Timer    // nil: no sweep is planned
	wait  time.Duration // of the timer
	no    uint64        // of the timer; one with another number was stopped too late

	sweeping bool          // a sweep is under way, which plans the next at its end
	asked    time.Duration // what plan was asked for meanwhile; 0: nothing

	// resting: objects are in memory, and no sweep is planned since all of them were
	// busy. The first that ends its turn or work plans one. Changed under mu.
	resting atomic.Bool
}

// lruLinks is an activation's place in the clock.
type lruLinks struct {
	prev, next *activation // guarded by lru.mu
	since      int64       // when a sweep last saw that it had been used, in nanoseconds; only sweeps use it
}

var errEvicted = errors.New("evicted")

func (l *lru) init(h *Host) { l.host = h }

// add puts an activation last. Beyond Options.MaxLive it makes room for it, and for
// one more if there are too many still, since those that could have gone were busy.
func (l *lru) add(a *activation) {
	a.used.Store(l.tick.Add(1))
	l.mu.Lock()
	l.append(a)
	a.listed = true
	l.live++
	over := l.live - l.host.options.MaxLive
	l.plan(a.hosted.options.IdleAfter)
	l.mu.Unlock()
	for range min(over, 2) {
		l.makeRoom()
	}
}

func (l *lru) append(a *activation) {
	a.lru.prev, a.lru.next = l.last, nil
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
	a.lru.prev, a.lru.next = nil, nil
}

func (l *lru) remove(a *activation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.listed {
		l.unlink(a)
		a.listed = false
		l.live--
	}
}

// size is the number of objects in memory.
func (l *lru) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live
}

// plan arms the timer for a sweep that serves objects which may be idle for so long,
// unless it is armed for one as soon. The caller holds the lock.
func (l *lru) plan(idleAfter time.Duration) {
	wait := max(idleAfter/2, time.Millisecond)
	l.resting.Store(false)
	switch {
	case l.sweeping:
		if l.asked == 0 || idleAfter < l.asked {
			l.asked = idleAfter
		}
		return
	case l.timer != nil && l.wait <= wait:
		return
	case l.timer != nil:
		l.timer.Stop()
	}
	l.wait = wait
	l.no++
	no := l.no
	l.timer = l.host.seams.Clock.AfterFunc(wait, func() { l.sweep(no) })
}

// idled tells that an object has ended a turn or a work.
func (l *lru) idled(a *activation) {
	if !l.resting.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resting.Load() && !l.host.life.closing.Load() {
		l.plan(a.hosted.options.IdleAfter)
	}
}

// sweep looks at each object once and drops those that have been idle for their
// time.
func (l *lru) sweep(no uint64) {
	l.mu.Lock()
	if no != l.no || l.sweeping {
		l.mu.Unlock()
		return
	}
	l.sweeping, l.timer = true, nil
	l.mu.Unlock()
	now := l.host.seams.Clock.Now().UnixNano()
	before := l.swept
	l.swept = l.tick.Add(1)
	for range l.size() {
		a := l.turnHand()
		if a == nil {
			break
		}
		if a.used.Load() >= before { // since the last sweep began
			a.lru.since = now
		} else if now-a.lru.since >= int64(a.hosted.options.IdleAfter) {
			a.evict()
		}
	}
	l.planNext()
}

// planNext plans the sweep that follows a sweep, if there is an idle object. The
// flag is set before the look, so that an object that becomes idle is either seen
// here or sees the flag.
func (l *lru) planNext() {
	l.mu.Lock()
	l.resting.Store(true)
	l.mu.Unlock()
	shortest, idle := time.Duration(math.MaxInt64), false
	for a := range l.all() {
		shortest = min(shortest, a.hosted.options.IdleAfter)
		idle = idle || !a.busy()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if asked := l.asked; asked != 0 {
		shortest, idle = min(shortest, asked), true
	}
	l.sweeping, l.asked = false, 0
	if idle && !l.host.life.closing.Load() {
		l.plan(shortest)
	}
}

// busy reports whether the activation has a turn or a work under way.
func (a *activation) busy() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running || a.head != nil || a.holds.Load() > 0
}

// makeRoom drops the object used least recently among those at the hand.
func (l *lru) makeRoom() {
	const looks = 8
	if oldest := l.oldestOf(looks); oldest != nil {
		oldest.evict()
	}
}

// oldestOf turns the hand past n activations and returns the one used least
// recently, or nil if there is none.
func (l *lru) oldestOf(n int) (oldest *activation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range n {
		a := l.next()
		if a != nil && (oldest == nil || a.used.Load() < oldest.used.Load()) {
			oldest = a
		}
	}
	return oldest
}

// turnHand puts the first activation last and returns it.
func (l *lru) turnHand() *activation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next()
}

// next is turnHand for who holds the lock.
func (l *lru) next() *activation {
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

package object

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// lru evicts objects that have been idle, and approximates "least recently used" with
// the clock algorithm: the activations are in a ring, in the order in which they came.
// The hand takes the first, evicts it if it has been idle for its time, and otherwise
// puts it last. One timer serves all objects. It is not armed while no object could
// leave memory: while none is in memory, or while all objects in memory have a turn or a
// work under way.
//
// A turn reads no clock: it only stores the tick in which it ended. Ticks tell which
// object was used last, and whether one was used since the last sweep. For example, if
// the last sweep began at tick 8, an object with used 9 has had a turn since, and one
// with used 7 has not.
type lru struct {
	host *Host
	tick atomic.Uint64 // grows with each object that comes and with each sweep

	swept uint64 // the tick in which the last sweep began; only sweeps use it

	// mu guards the fields below. It may be locked under activation.mu, and never the
	// other way round.
	mu    sync.Mutex
	first *activation   // at the hand
	last  *activation   // behind all others
	live  int           // activations in the ring
	timer seam.Timer    // nil: no sweep is planned
	wait  time.Duration // of the timer
	no    uint64        // of the timer; one with another number was stopped too late

	sweeping bool          // a sweep is under way, and plans the next one at its end
	asked    time.Duration // the shortest IdleAfter that plan was called with meanwhile; 0: none

	// resting is true if objects are in memory, and no sweep is planned because all of
	// them were busy. The first that ends its turn or routine plans one. It is changed under
	// mu and read without it, because each turn that leaves an object idle reads it.
	resting atomic.Bool
}

// lruLinks is an activation's place in the clock.
type lruLinks struct {
	prev, next *activation // guarded by lru.mu
	// since is when a sweep last saw that the object had been used, in nanoseconds of the
	// Unix epoch. Only sweeps use it, and one sweep runs at a time.
	since int64
}

// errEvicted is why the instance of an evicted object is gone.
var errEvicted = errors.New("evicted")

// init sets the host of a zero lru. Open calls it before anything else uses the lru.
func (l *lru) init(h *Host) { l.host = h }

// add puts a new activation last. Beyond Options.MaxLive it evicts one object for it, and
// a second one if there are still too many, because earlier attempts may have met only
// busy objects. hosted.find calls it, once for each activation and without a mutex.
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

// append puts an activation last in the ring. The caller holds mu.
func (l *lru) append(a *activation) {
	a.lru.prev, a.lru.next = l.last, nil
	if l.last == nil {
		l.first = a
	} else {
		l.last.lru.next = a
	}
	l.last = a
}

// unlink takes an activation out of the ring. The caller holds mu.
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

// remove takes an activation that is gone out of the ring, if it is in it. An activation
// may end before add has listed it; the evict of a later sweep removes it then.
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

// plan arms the timer for a sweep after half of idleAfter, unless it is armed for one as
// soon. Half, so that an object leaves memory at most about half of its IdleAfter late. A
// sweep under way arms no timer now: planNext does so at its end. The caller holds mu.
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

// idled is called when an object has ended a turn or a routine. If no sweep is planned, it
// plans one, because this object may leave memory now. A host that is closing plans none.
// The caller may hold a.mu, but not mu.
func (l *lru) idled(a *activation) {
	if !l.resting.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resting.Load() && !l.host.lifecycle.closing.Load() {
		l.plan(a.hosted.options.IdleAfter)
	}
}

// sweep looks at each object once and evicts those that have been idle for their time.
// The timer number no calls it; it returns if plan has set another timer since. It locks
// mu for one object at a time, so that new activations need not wait for a whole sweep.
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

// planNext plans the sweep that follows a sweep, if there is an idle object. It sets
// resting before it looks at the objects, so that an object that becomes idle is either
// found idle here, or finds resting set and plans the sweep itself.
func (l *lru) planNext() {
	l.mu.Lock()
	l.resting.Store(true)
	l.mu.Unlock()
	// The objects are looked at without mu, because busy locks their mutexes.
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
	if idle && !l.host.lifecycle.closing.Load() {
		l.plan(shortest)
	}
}

// busy reports whether the activation has a turn or a routine under way.
func (a *activation) busy() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running || a.head != nil || a.holds.Load() > 0
}

// makeRoom evicts one object: the one used least recently among the eight at the hand. A
// busy one stays, and nothing is evicted then. Eight looks cost a new activation little,
// and choose well enough, because the hand has passed all others more recently.
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

// turnHand puts the first activation last and returns it; nil if there is none.
func (l *lru) turnHand() *activation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next()
}

// next does the work of turnHand. The caller holds mu.
func (l *lru) next() *activation {
	a := l.first
	if a != nil {
		l.unlink(a)
		l.append(a)
	}
	return a
}

// evict takes an idle activation out of memory. It changes no stored row (O10). An
// activation with a turn, a waiting request or a routine stays. The caller holds no mutex.
func (a *activation) evict() {
	a.mu.Lock()
	if a.gone { // it ended before add listed it
		a.mu.Unlock()
		a.hosted.unload(a)
		return
	}
	if a.running || a.head != nil || a.holds.Load() > 0 {
		a.mu.Unlock()
		return
	}
	a.gone = true
	state := a.state
	a.mu.Unlock()
	// gone is set, so no turn begins any more, and the rest needs no mutex.
	if state != nil {
		state.end(errEvicted)
	}
	a.hosted.unload(a)
	a.hosted.counts.evicted.Add(1)
}

// all yields the activations in the order of the clock, as they were when all was called.
// The loop runs without mu, so that its body may lock the mutex of an activation.
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

// admit refuses the newest call of an overloaded object (O11). An object is overloaded
// if MailboxLimit calls wait, or if the first of them has waited longer than MailboxAge.
// Alarms, messages and turns of the runtime are exempt, but their places in the queue
// count. The caller holds mu.
func (a *activation) admit(r *Request) error {
	if r.exempt {
		return nil
	}
	r.queuedAt = a.host.seams.Steady()
	full, age := a.overload(r.queuedAt)
	switch {
	case full:
		a.hosted.counts.overloaded.Add(1)
		return fmt.Errorf("%s: %w: %d calls wait %s", a.object.ID, ErrOverloaded, a.queued, a.holder())
	case age > 0:
		a.hosted.counts.overloaded.Add(1)
		return fmt.Errorf("%s: %w: a call has waited for %v %s", a.object.ID, ErrOverloaded, age.Round(time.Millisecond), a.holder())
	}
	return nil
}

// overload reports whether the mailbox is full, and otherwise how long the first call has
// waited at a time, if that is longer than MailboxAge. A call is refused in both cases. The
// caller holds mu.
func (a *activation) overload(now time.Time) (full bool, age time.Duration) {
	o := &a.hosted.options
	a.sift(o.MailboxLimit)
	if int(a.queued) >= o.MailboxLimit {
		return true, 0
	}
	if a.head == nil || a.head.queuedAt.IsZero() {
		return false, 0
	}
	if age = now.Sub(a.head.queuedAt); age <= o.MailboxAge {
		return false, 0
	}
	return false, age
}

// sift removes abandoned requests from the queue, if the queue is full or begins with
// one. It does nothing otherwise, because a walk over the queue at each call would make
// a burst of n calls cost n² steps. The caller holds mu.
func (a *activation) sift(limit int) {
	if a.head == nil || int(a.queued) < limit && a.head.progress.Load() != abandoned {
		return
	}
	rest := a.head
	a.head, a.tail, a.queued = nil, nil, 0
	for rest != nil {
		r := rest
		rest = r.next
		if r.progress.Load() != abandoned {
			a.push(r)
		}
	}
}

// push puts a request at the end of the queue. The caller holds mu.
func (a *activation) push(r *Request) {
	r.next = nil
	if a.head == nil {
		a.head = r
	} else {
		a.tail.next = r
	}
	a.tail = r
	a.queued++
}

// pushTrial puts a message on trial before all calls and other messages, because a trial has
// a limit of time. It comes after those of the same trial, so that these keep their order,
// but before those of an earlier one, which have had their time. The caller holds mu.
func (a *activation) pushTrial(r *Request) {
	at := &a.head
	for *at != nil && (*at).before(r.message()) {
		at = &(*at).next
	}
	if *at == nil {
		a.push(r)
		return
	}
	r.next, *at = *at, r
	a.queued++
}

// before reports whether a request in the queue stays before a message on trial.
func (r *Request) before(tried *message) bool {
	if m := r.message(); m != nil {
		return m.onTrial() && m.trial == tried.trial
	}
	_, back := r.op.(handOver)
	return back
}

// pushFront puts a request before all others: the handOver of a turn that was lent out,
// which began before the others and for which they may wait. The caller holds mu.
func (a *activation) pushFront(r *Request) {
	r.next = a.head
	a.head = r
	if r.next == nil {
		a.tail = r
	}
	a.queued++
}

// pop takes the next request out of the queue and marks it started, or returns nil. It
// skips abandoned requests. From then on the caller of the request cannot abandon it.
// The caller of pop holds mu.
func (a *activation) pop() *Request {
	for a.head != nil {
		r := a.head
		a.head = r.next
		if a.head == nil {
			a.tail = nil
		}
		r.next = nil
		a.queued--
		if r.progress.CompareAndSwap(waiting, started) {
			return r
		}
	}
	return nil
}

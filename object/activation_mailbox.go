package object

import (
	"fmt"
	"time"
)

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

package object

import (
	"context"
	"fmt"
	"time"
)

// accept gives the request its place. If the object is idle and in memory, the
// caller owns the turn and runs it; otherwise the request waits in the queue.
func (a *activation) accept(ctx context.Context, r *Request, mayRun bool) (inline bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone {
		return false, errGone
	}
	if r.life != nil && r.life != a.life {
		return false, named(a.id, ErrReset)
	}
	if !a.running && a.head == nil && mayRun && (a.life != nil || r.exempt) {
		a.begin(r.what)
		return true, nil
	}
	if err := a.admit(r); err != nil {
		return false, err
	}
	if r.done == nil {
		r.done = a.hosted.host.doneChans.Get().(chan struct{})
	}
	a.push(r)
	if !a.running {
		a.running = true
		a.hosted.host.crew.add(a)
	}
	return false, nil
}

// admit refuses the newest call of an overloaded object (O11).
func (a *activation) admit(r *Request) error {
	if r.exempt {
		return nil
	}
	o := &a.hosted.options
	r.queuedAt = a.hosted.host.seams.Steady()
	a.sift(o.MailboxLimit)
	if a.queued >= o.MailboxLimit {
		a.hosted.counts.overloaded.Add(1)
		return fmt.Errorf("%s: %w: %d calls wait %s", a.id, ErrOverloaded, a.queued, a.holder())
	}
	if a.head != nil && !a.head.queuedAt.IsZero() && r.queuedAt.Sub(a.head.queuedAt) > o.MailboxAge {
		a.hosted.counts.overloaded.Add(1)
		age := r.queuedAt.Sub(a.head.queuedAt).Round(time.Millisecond)
		return fmt.Errorf("%s: %w: a call has waited for %v %s", a.id, ErrOverloaded, age, a.holder())
	}
	return nil
}

// sift takes the requests whose callers have gone out of the queue, if it is full
// or begins with one.
func (a *activation) sift(limit int) {
	if a.head == nil || a.queued < limit && a.head.state.Load() != abandoned {
		return
	}
	rest := a.head
	a.head, a.tail, a.queued = nil, nil, 0
	for rest != nil {
		r := rest
		rest = r.next
		if r.state.Load() != abandoned {
			a.push(r)
		}
	}
}

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

// pushFront puts a request before all others: one whose turn was lent out.
func (a *activation) pushFront(r *Request) {
	r.next = a.head
	a.head = r
	if a.tail == nil || r.next == nil {
		a.tail = r
	}
	a.queued++
}

// pop takes the next request that is still wanted, or returns nil.
func (a *activation) pop() *Request {
	for a.head != nil {
		r := a.head
		a.head = r.next
		if a.head == nil {
			a.tail = nil
		}
		r.next = nil
		a.queued--
		if r.state.CompareAndSwap(waiting, started) {
			return r
		}
	}
	return nil
}

// await waits for a queued request. A ctx that ends while it waits takes it out;
// one that ends while its handler runs leaves its outcome unknown. A turn that has
// ended has a known outcome, for which the caller waits in any case.
func (a *activation) await(ctx context.Context, r *Request) error {
	cause := a.hosted.host.seams.Executor.Wait(ctx, r.done)
	switch {
	case cause == nil:
	case r.state.CompareAndSwap(waiting, abandoned):
		return named(a.id, cause)
	case r.depart(a.hosted.host):
		return fmt.Errorf("%s: %w: %w", a.id, ErrUnknown, cause)
	default:
		_ = a.hosted.host.seams.Executor.Wait(context.Background(), r.done)
	}
	a.hosted.host.doneChans.Put(r.done)
	return r.err
}

// depart leaves a request whose handler runs to itself, if it still does. Its turn
// then counts among what the host runs, as the call did until now.
func (r *Request) depart(h *Host) bool {
	h.life.begin()
	r.left = r.state.CompareAndSwap(started, departed)
	if !r.left {
		h.life.leave()
	}
	return r.left
}

// run serves the queue until it is empty.
func (a *activation) run() {
	for {
		r := a.take()
		if r == nil {
			return
		}
		if h, ok := r.op.(handOver); ok {
			h.wake <- struct{}{} // the turn goes to a task that had lent it out
			return
		}
		owns := a.serve(r)
		r.finish(a.hosted.host)
		if !owns {
			return
		}
	}
}

// take pops the next request, or frees the turn if there is none.
func (a *activation) take() *Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone {
		return nil
	}
	r := a.pop()
	if r == nil {
		a.running = false
		a.hosted.host.lru.idled(a)
		return nil
	}
	a.begin(r.what)
	return r
}

// finish tells who waits for the request that its turn has ended: at once, or, if
// the reply is gated, when it is durable, so that one wake is enough.
func (r *Request) finish(h *Host) {
	if r.done == nil {
		return
	}
	if !r.state.CompareAndSwap(started, replying) {
		if r.state.Load() == departed {
			h.life.leave()
		}
		return
	}
	if r.gated && h.store.Follow(&r.follower, r.ticket, r.done) {
		return
	}
	r.done <- struct{}{}
}

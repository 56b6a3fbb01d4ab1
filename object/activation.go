package object

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// activation is an object in memory: its mailbox, and the instance that its
// turns run on. A reset replaces the instance and its State and keeps the
// mailbox.
//
// The turn is a token: running says that somebody owns it. The owner alone may
// touch the fields under "owned"; whoever gives the turn up calls yield, which
// passes it to a task that serves the queue, or frees it.
//
// What each turn touches comes first, so that it lies in few cache lines.
type activation struct {
	mu      sync.Mutex
	running bool // the turn is owned
	gone    bool // evicted, deleted or stuck: no turn begins any more
	writing bool // a commit is being applied

	located  bool   // owned: object has been read
	rowKnown bool   // owned: row has been read
	empty    bool   // owned: no key, mark or open execution is stored, for certain
	reason   Reason // owned

	queued int
	head   *Request
	tail   *Request
	hosted *hosted // never changes

	// owned
	life     *State
	instance any // nil: the constructor has yet to run
	object   storage.Object
	current  *turn

	used atomic.Int64  // when the last turn ended, in nanoseconds
	last atomic.Uint64 // the newest ticket that the object's memory depends on
	id   storage.ID    // never changes

	holds   atomic.Int32  // works that hold off eviction
	settled chan struct{} // guarded by mu; not nil: closed when the commit has been applied
	lru     lruLinks      // guarded by lru.mu

	// owned
	row     *alarm.Row               // the stored alarm; nil: none
	answers map[string]chan struct{} // closed when the call that runs under the key has ended
}

// find returns the activation of an object, and makes it if need be.
func (c *hosted) find(name string) *activation {
	if a, ok := c.live.Load(name); ok {
		return a
	}
	made := false
	a, _ := c.live.LoadOrCompute(name, func() (*activation, bool) {
		made = true
		return &activation{hosted: c, id: storage.ID{Class: c.name, Name: name}}, false
	})
	if made {
		c.host.lru.add(a)
	}
	return a
}

// drop takes an activation out of memory. It is gone already.
func (c *hosted) drop(a *activation) {
	raise(&c.host.departed, a.last.Load())
	c.live.Compute(a.id.Name, func(old *activation, loaded bool) (*activation, xsync.ComputeOp) {
		if loaded && old == a {
			return nil, xsync.DeleteOp
		}
		return old, xsync.CancelOp
	})
	c.host.lru.remove(a)
}

// deliver runs a request on its object and returns when its turn has ended.
func (c *hosted) deliver(ctx context.Context, r *Request) error {
	r.turn.Context = ctx
	for {
		if err := context.Cause(ctx); err != nil {
			return named(r.id, err)
		}
		a := c.find(r.id.Name)
		switch inline, err := a.accept(ctx, r, true); {
		case err == errGone:
			c.drop(a)
		case err != nil:
			return err
		case inline:
			if a.serve(r) {
				a.yield()
			}
			return r.err
		default:
			return a.await(ctx, r)
		}
	}
}

var errGone = fmt.Errorf("object: %w", ErrReset)

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
		a.running = true
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
		return fmt.Errorf("%s: %w: %d calls wait", a.id, ErrOverloaded, a.queued)
	}
	if a.head != nil && !a.head.queuedAt.IsZero() && r.queuedAt.Sub(a.head.queuedAt) > o.MailboxAge {
		a.hosted.counts.overloaded.Add(1)
		return fmt.Errorf("%s: %w: a call has waited for %v", a.id, ErrOverloaded, r.queuedAt.Sub(a.head.queuedAt).Round(time.Millisecond))
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
	a.running = r != nil
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

// yield gives up the turn: to a task that serves the queue, or to nobody.
func (a *activation) yield() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.gone:
	case a.head == nil:
		a.running = false
	default:
		a.hosted.host.crew.add(a)
	}
}

// handOver stands in the queue for a turn that was lent out and is wanted back.
type handOver struct{ wake chan struct{} }

func (handOver) run(context.Context, *activation) error { return nil }

// resume gets the turn back for a task that has lent it out. It reports whether
// the task owns the turn; if not, the object has left memory meanwhile. A turn
// whose activation was reset gets it back too: its end touches what others share.
func (a *activation) resume() bool {
	h := handOver{wake: make(chan struct{}, 1)}
	a.mu.Lock()
	switch {
	case a.gone:
		a.mu.Unlock()
		return false
	case !a.running:
		a.running = true
		a.mu.Unlock()
		return true
	}
	a.pushFront(&Request{id: a.id, op: h})
	a.mu.Unlock()
	_ = a.hosted.host.seams.Executor.Wait(context.Background(), h.wake)
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.gone
}

// beginCommit keeps the end of the activation out while a commit is applied. It
// returns ErrReset if the activation has ended.
func (a *activation) beginCommit() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone {
		return named(a.id, ErrReset)
	}
	a.writing = true
	return nil
}

func (a *activation) endCommit() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writing = false
	if a.settled != nil {
		close(a.settled)
		a.settled = nil
	}
}

// end takes the activation out of service, whatever its turn is doing: after end
// no commit of it is applied any more. The calls that wait are given to what
// follows; it returns false if the activation had ended before.
func (a *activation) end(cause error, follow func([]*Request)) bool {
	a.mu.Lock()
	for a.writing {
		if a.settled == nil {
			a.settled = make(chan struct{})
		}
		settled := a.settled
		a.mu.Unlock()
		_ = a.hosted.host.seams.Executor.Wait(context.Background(), settled)
		a.mu.Lock()
	}
	if a.gone {
		a.mu.Unlock()
		return false
	}
	a.gone = true
	var rest []*Request
	for r := a.pop(); r != nil; r = a.pop() {
		if h, ok := r.op.(handOver); ok {
			h.wake <- struct{}{}
			continue
		}
		if r.state.CompareAndSwap(started, waiting) { // its caller is still there
			rest = append(rest, r)
		}
	}
	life := a.life
	a.mu.Unlock()
	if life != nil {
		life.end(cause)
	}
	a.hosted.drop(a)
	follow(rest)
	return true
}

// again puts calls that waited for an ended activation before a new one.
func (c *hosted) again(rs []*Request) {
	for _, r := range rs {
		for {
			a := c.find(r.id.Name)
			_, err := a.accept(r.turn.Context, r, false)
			if err == errGone {
				c.drop(a)
				continue
			}
			if err != nil {
				c.host.refuse(err, r)
			}
			break
		}
	}
}

// refuse answers calls with err without running them.
func (h *Host) refuse(err error, rs ...*Request) {
	for _, r := range rs {
		switch {
		case r.state.CompareAndSwap(waiting, started), r.state.Load() == started:
			r.err = err
			r.finish(h)
		case r.state.Load() == departed:
			r.finish(h)
		}
	}
}

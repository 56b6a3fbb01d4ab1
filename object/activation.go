package object

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object/internal/inbox"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// activation is an object in memory: its mailbox, and the instance of the user's type
// that its turns run on. A reset drops the instance and its State and keeps the
// mailbox; the next turn constructs another instance.
//
// The turn is a token: running says that a goroutine owns it. Only the owner may touch
// the fields marked "owned", and it needs no mutex for them. The owner gives the turn up
// with yield, which passes it to a goroutine of the crew, or frees it. The other fields
// say their guard; those without one are atomic or guarded by mu.
//
// Mutexes are locked in this order: waits.mu, activation.mu, lru.mu. Those of inbox.Inboxes
// may be locked under activation.mu, and lock no other.
//
// The fields of a turn that only reads memory come first, so that they lie in two cache
// lines.
type activation struct {
	mu      sync.Mutex
	running bool // a goroutine owns the turn
	gone    bool // evicted, deleted or stuck: no turn begins any more
	writing bool // the store is applying a commit of the turn
	begun   bool // a turn has begun and not ended; only running is set before the owner begins one

	located  bool   // owned: object has been read
	rowKnown bool   // owned: row has been read
	empty    bool   // owned: no key, mark or open execution is stored, for certain
	reason   Reason // owned: why its instance began

	// head is the first request of the queue, nil if it is empty.
	head   *Request
	host   *Host        // never changes
	hosted *hosted      // never changes: its class
	turns  uint32       // grows with each turn that gets the object; guarded by mu
	holds  atomic.Int32 // running routines, which keep the object in memory
	what   *string      // the method of the present turn, see Request; guarded by mu

	// state belongs to the instance. Only the owner of the turn writes it, and with mu
	// locked, because accept, end and evict read it under mu without the turn.
	state *State
	// instance is owned. It is nil until the constructor has run.
	instance any

	used  atomic.Uint64 // the tick of the lru in which the last turn ended
	last  atomic.Uint64 // the newest ticket that the object's memory depends on
	first State         // of the first instance, because most activations have no other

	// object.ID never changes, and any goroutine may read it. The number, shard and epoch as
	// they are stored are owned, and placed sets them.
	object storage.Object

	tail    *Request      // the last request of the queue
	queued  int32         // the length of the queue
	listed  bool          // guarded by lru.mu: it has a place in the lru
	owner   AlarmOwner    // owned: of the alarm, while its instance lives
	settled chan struct{} // guarded by mu; not nil: closed when the commit has been applied
	lru     lruLinks      // guarded by lru.mu

	// row and answers are owned. They are a cache of stored rows.
	row     *alarm.Row   // the stored alarm; nil: none
	answers *answerCache // of its marks; nil: none was asked for
}

// find returns the activation of an object, and makes it if there is none. It checks
// the name only of a new one, because an activation in memory has a valid name. The
// activation may be gone before the caller uses it; accept returns errGone then.
func (c *hosted) find(name string) (*activation, error) {
	if a, ok := liveIn(c).Load(name); ok {
		return a, nil
	}
	id := storage.ID{Class: c.name, Name: name}
	if err := id.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadName, err)
	}
	made := false
	a, _ := liveIn(c).LoadOrCompute(name, func() *activation {
		made = true
		return &activation{host: c.host, hosted: c, object: storage.Object{ID: id}}
	})
	if made {
		c.host.lru.add(a)
	}
	return a, nil
}

// unload takes an activation that is gone out of the class's map and out of the lru. It
// may be called more than once, because each goroutine that meets a gone activation
// calls it. It raises departed first, so that a read of the rows waits for the commits
// that the activation depended on.
func (c *hosted) unload(a *activation) {
	raise(&c.host.departed, a.last.Load())
	liveIn(c).Compute(a.object.ID.Name, func(old *activation, loaded bool) (_ *activation, remove bool) {
		return old, !loaded || old == a
	})
	c.host.lru.remove(a)
}

// deliver runs a request on its object and returns when its turn has ended. The turn
// runs on the caller's goroutine if the object is idle and in memory, because a handover
// to another goroutine costs more than a short turn. Otherwise a goroutine of the crew
// runs it, and deliver waits. Calls, alarms and turns of the runtime come this way.
func (c *hosted) deliver(ctx context.Context, r *Request) error {
	r.ctx = ctx
	if r.detached {
		r.ctx = context.WithoutCancel(ctx)
	}
	for {
		if ctx.Err() != nil {
			return named(r.id, seam.Cause(ctx))
		}
		a, err := c.find(r.id.Name)
		if err != nil {
			return err
		}
		switch inline, err := a.accept(ctx, r, !r.detached || r.leave != nil); {
		case err == errGone:
			c.unload(a)
		case err != nil:
			return err
		case inline && r.leave != nil:
			return a.serveInTime(ctx, r)
		case inline:
			return a.serveInline(r)
		default:
			return a.await(ctx, r)
		}
	}
}

// serveInline runs a request on the goroutine of its caller, which owns the turn, and gives up the turn.
func (a *activation) serveInline(r *Request) error {
	if a.serve(r) {
		a.yield()
	}
	return r.err
}

// serveInTime is serveInline for a detached call with Inline. It calls r.leave when the deadline of ctx passes while the handler runs.
func (a *activation) serveInTime(ctx context.Context, r *Request) error {
	stop := a.leaveAtDeadline(ctx, r)
	err := seam.Guard(func() error { return a.serveInline(r) }, func(p *seam.PanicError) error {
		switch left := stop(); {
		case !p.Exited(): // a mistake of the host's, because serve guards the handler
			panic(p.Value)
		case !left:
			r.leave(a.host.touched(r, a.host.letOut(ctx, r, r.err)))
		}
		return r.err
	})
	stop()
	return err
}

// leaveAtDeadline calls r.leave when the deadline of ctx passes before stop is called. stop waits for a call that has begun, and reports
// whether there was one.
func (a *activation) leaveAtDeadline(ctx context.Context, r *Request) (stop func() (left bool)) {
	at, ok := ctx.Deadline()
	if !ok {
		return func() bool { return false }
	}
	h, leave := a.host, r.leave
	ended := h.doneChans.Get().(chan struct{})
	timer := h.seams.Clock.AfterFunc(at.Sub(h.seams.Clock.Now()), func() {
		leave(unknown(a.object.ID, context.DeadlineExceeded))
		ended <- struct{}{}
	})
	return func() (left bool) {
		if left = !timer.Stop(); left {
			_ = h.seams.Executor.Wait(context.Background(), ended)
		}
		h.doneChans.Put(ended)
		return left
	}
}

// errGone is accept's error for an activation that has left memory. The request may be
// delivered to the next one. It is a value of its own, because a request that is bound
// to an instance gets another ErrReset, which must not be repeated.
var errGone = fmt.Errorf("%w", ErrReset)

// yield gives up the turn. If requests wait, a goroutine of the crew gets the turn;
// otherwise the turn is free. The caller owns the turn and must not touch owned fields
// after this.
func (a *activation) yield() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begun = false
	switch {
	case a.gone: // no turn begins any more, and end has emptied the queue
	case a.head == nil:
		a.running = false
		a.host.lru.idled(a)
	default:
		a.host.crew.Add(a)
	}
}

// begin notes that a turn gets the object. It also wakes the watch over turns that hold
// their object too long, and the one over a log. The caller holds mu.
func (a *activation) begin(what *string) {
	a.running, a.begun, a.what = true, true, what
	a.turns++
	if w := &a.host.held; !w.awake.Load() {
		w.wake(a)
	}
	if s := a.host.suspension; s != nil && !s.awake.Load() {
		s.wake()
	}
}

// end takes the activation out of service, also while a turn runs. It waits for a commit
// that the store is applying; after end no commit of the activation is applied any more.
// Then it cancels the instance, empties the queue, and gives the waiting calls to follow.
// It returns false, and calls nothing, if the activation had ended before. The caller
// need not own the turn. It holds no mutex, because end waits.
func (a *activation) end(cause error, follow func([]*Request)) bool {
	a.mu.Lock()
	for a.writing {
		if a.settled == nil {
			a.settled = make(chan struct{})
		}
		settled := a.settled
		a.mu.Unlock()
		_ = a.host.seams.Executor.Wait(context.Background(), settled)
		a.mu.Lock()
	}
	if a.gone {
		a.mu.Unlock()
		return false
	}
	a.gone = true
	// The messages under way are read again, because one that is sent from now on would
	// pass those which wait here.
	to := inbox.Receiver{ID: a.object.ID, Shard: a.host.store.ShardOf(a.object.ID)}
	read := a.host.mail.boxes.Detach(to)
	var rest []*Request
	for r := a.pop(); r != nil; r = a.pop() {
		if h, ok := r.op.(handOver); ok {
			// Its turn was lent out. The woken goroutine finds that the activation is gone.
			h.wake <- struct{}{}
			continue
		}
		if r.progress.CompareAndSwap(started, waiting) { // its caller is still there
			rest = append(rest, r)
		}
	}
	state := a.state
	a.mu.Unlock()
	if state != nil {
		state.end(cause)
	}
	a.hosted.unload(a)
	follow(rest)
	if read {
		a.host.mail.read(to)
	}
	return true
}

// again delivers calls that waited in the queue of an ended activation to the next
// activation of the object. Their callers still wait for done, so a call that cannot be
// delivered is answered with the error.
func (c *hosted) again(rs []*Request) {
	for _, r := range rs {
		for {
			a, err := c.find(r.id.Name)
			if err == nil {
				_, err = a.accept(r.ctx, r, false)
			}
			if err == errGone {
				c.unload(a)
				continue
			}
			if err != nil {
				c.host.refuse(err, r)
			}
			break
		}
	}
}

// refuse answers calls with err without running them. The calls are out of the queue. A
// call that is abandoned needs no answer, because its caller has returned already. The text of err may tell
// something that a handler has read, so over a log it waits as an error of the handler does.
func (h *Host) refuse(err error, rs ...*Request) {
	for _, r := range rs {
		switch {
		case r.progress.CompareAndSwap(waiting, started), r.progress.Load() == started:
			r.err = err
			if r.gated {
				r.ticket = h.store.Seen(r.ticket)
			}
			r.finish(h)
		case r.progress.Load() == departed:
			r.finish(h)
		}
	}
}

// accept gives the request the turn or a place in the queue. If the object is idle and
// has an instance, and mayRun is set, inline is true: the caller owns the turn and runs
// the request. Otherwise the request waits in the queue, and a goroutine of the crew
// serves it. A call that needs the constructor is queued too, because the goroutines of
// the crew have grown the stack that a read of the store needs. accept returns errGone,
// ErrReset for a request that is bound to a former instance, or ErrOverloaded.
func (a *activation) accept(ctx context.Context, r *Request, mayRun bool) (inline bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone {
		return false, errGone
	}
	if r.state != nil && r.state != a.state {
		return false, named(a.object.ID, ErrReset)
	}
	if !a.running && a.head == nil && mayRun && (a.state != nil || r.exempt) {
		a.begin(r.what)
		return true, nil
	}
	if err := a.admit(r); err != nil {
		return false, err
	}
	if r.done == nil && r.message() == nil {
		r.done = a.host.doneChans.Get().(chan struct{})
	}
	if m := r.message(); m != nil && m.onTrial() {
		a.pushTrial(r)
	} else {
		a.push(r)
	}
	if !a.running {
		a.running = true
		a.host.crew.Add(a)
	}
	return false, nil
}

// await waits for the answer of a queued request. There are three cases when ctx ends:
//
//   - The request still waits: it is abandoned, and never runs (O11).
//   - Its handler runs: the caller leaves with ErrUnknown, because the turn may still
//     commit or fail.
//   - Its turn has ended: the outcome is known, so await waits for the reply, which
//     only the disk can delay, or a replicated log (hold).
//
// The channel done goes back to the pool only if this goroutine has received from it,
// because otherwise a late answer could reach the next request.
func (a *activation) await(ctx context.Context, r *Request) error {
	cause := a.host.seams.Executor.Wait(ctx, r.done)
	switch {
	case cause == nil:
	case r.progress.CompareAndSwap(waiting, abandoned):
		return named(a.object.ID, cause)
	case r.depart(a.host):
		return unknown(a.object.ID, cause)
	default:
		a.host.store.Hurry(&r.follower)
		_ = a.host.seams.Executor.Wait(context.Background(), r.done)
	}
	a.host.doneChans.Put(r.done)
	return r.err
}

// depart leaves a request alone while its handler runs, and reports whether it did. It
// returns false if the turn has just ended. The turn is counted in the lifecycle from
// here until finish, so that Shutdown waits for it as it waited for the call before.
func (r *Request) depart(h *Host) bool {
	h.lifecycle.begin()
	r.left = r.progress.CompareAndSwap(started, departed)
	if !r.left {
		h.lifecycle.leave()
	}
	return r.left
}

// failing keeps the caller of a request until it has the error of the turn, because the reset by rollBack may end the
// caller's context, which comes from the instance.
func (r *Request) failing() { r.progress.CompareAndSwap(started, replying) }

// Run serves the queue until it is empty, or until another goroutine owns the turn: one
// that takes back the turn it has lent out, or one that began a turn while a handler had
// lent out this one and did not take it back. The crew calls it and owns the turn, which
// passed to it with crew.Add. If a handler ends the goroutine (runtime.Goexit), the
// deferred function of serve passes the turn on.
func (a *activation) Run() {
	for {
		r := a.take()
		if r == nil {
			return
		}
		if h, ok := r.op.(handOver); ok {
			h.wake <- struct{}{} // the turn goes to the goroutine that had lent it out
			return
		}
		owns := a.serve(r)
		r.finish(a.host)
		if !owns {
			return
		}
	}
}

// take pops the next request and begins its turn, or frees the turn if there is none.
// Both happen under one lock of mu, so that a request which accept queues meanwhile is
// either taken here or finds the turn free. It returns nil for a gone activation.
func (a *activation) take() *Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begun = false
	if a.gone {
		return nil
	}
	r := a.pop()
	if r == nil {
		a.running = false
		a.host.lru.idled(a)
		return nil
	}
	a.begin(r.what)
	return r
}

// finish tells the waiting caller that the turn of its request has ended. If the reply is
// gated, the store wakes the caller: when the commits that the reply depends on are
// durable, or when it is the caller's place to sync the log. So its goroutine wakes once
// and not twice. A request that ran inline has no done, and a caller that has departed
// gets nothing: only the lifecycle learns that the turn has ended.
func (r *Request) finish(h *Host) {
	if m := r.message(); m != nil {
		r.progress.Store(replying)
		m.landed(r.err)
		return
	}
	if r.done == nil {
		return
	}
	if !r.progress.CompareAndSwap(started, replying) && r.progress.Load() != replying {
		if r.progress.Load() == departed {
			h.lifecycle.leave()
		}
		return
	}
	if r.gated && h.store.Follow(&r.follower, r.ticket, r.done) {
		return
	}
	r.done <- struct{}{}
}

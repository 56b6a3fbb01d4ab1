package object

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/seam"
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
// What a turn touches that only reads memory comes first, so that it lies in two
// cache lines.
type activation struct {
	mu      sync.Mutex
	running bool // the turn is owned
	gone    bool // evicted, deleted or stuck: no turn begins any more
	writing bool // a commit is being applied

	located  bool   // owned: object has been read
	rowKnown bool   // owned: row has been read
	empty    bool   // owned: no key, mark or open execution is stored, for certain
	reason   Reason // owned

	head   *Request
	hosted *hosted // never changes
	turns  uint32  // grows with each turn that gets the object; guarded by mu
	what   *string // what the present turn runs, see Request.what; guarded by mu

	// owned
	life     *State
	instance any // nil: the constructor has yet to run
	current  *turn

	used  atomic.Uint64 // the tick of the lru in which the last turn ended
	last  atomic.Uint64 // the newest ticket that the object's memory depends on
	first State         // the first life: most activations have no other

	object storage.Object // owned
	id     storage.ID     // never changes

	queued  int
	tail    *Request
	holds   atomic.Int32  // works that hold off eviction
	listed  bool          // guarded by lru.mu: it has a place in the lru
	settled chan struct{} // guarded by mu; not nil: closed when the commit has been applied
	lru     lruLinks

	// owned
	row    *alarm.Row // the stored alarm; nil: none
	recall *recall    // of its marks; nil: none was asked for
}

// find returns the activation of an object, and makes it if need be. One that is
// there has a valid name.
func (c *hosted) find(name string) (*activation, error) {
	if a, ok := c.live.Load(name); ok {
		return a, nil
	}
	id := storage.ID{Class: c.name, Name: name}
	if err := id.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadName, err)
	}
	made := false
	a, _ := c.live.LoadOrCompute(name, func() *activation {
		made = true
		return &activation{hosted: c, id: id}
	})
	if made {
		c.host.lru.add(a)
	}
	return a, nil
}

// drop takes an activation out of memory. It is gone already.
func (c *hosted) drop(a *activation) {
	raise(&c.host.departed, a.last.Load())
	c.live.Compute(a.id.Name, func(old *activation, loaded bool) (_ *activation, remove bool) {
		return old, !loaded || old == a
	})
	c.host.lru.remove(a)
}

// deliver runs a request on its object and returns when its turn has ended.
func (c *hosted) deliver(ctx context.Context, r *Request) error {
	r.ctx = ctx
	for {
		if ctx.Err() != nil {
			return named(r.id, seam.Cause(ctx))
		}
		a, err := c.find(r.id.Name)
		if err != nil {
			return err
		}
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

var errGone = fmt.Errorf("%w", ErrReset)

// yield gives up the turn: to a task that serves the queue, or to nobody.
func (a *activation) yield() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.gone:
	case a.head == nil:
		a.running = false
		a.hosted.host.lru.idled(a)
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
func (a *activation) resume(what *string) bool {
	h := handOver{wake: make(chan struct{}, 1)}
	a.mu.Lock()
	switch {
	case a.gone:
		a.mu.Unlock()
		return false
	case !a.running:
		a.begin(what)
		a.mu.Unlock()
		return true
	}
	a.pushFront(&Request{id: a.id, op: h, what: what})
	a.mu.Unlock()
	_ = a.hosted.host.seams.Executor.Wait(context.Background(), h.wake)
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.gone
}

// begin notes that a turn gets the object. The caller holds mu.
func (a *activation) begin(what *string) {
	a.running, a.what = true, what
	a.turns++
	if w := &a.hosted.host.held; !w.awake.Load() {
		w.wake(a)
	}
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
			a, err := c.find(r.id.Name)
			if err == nil {
				_, err = a.accept(r.ctx, r, false)
			}
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

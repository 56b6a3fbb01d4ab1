// Package crew runs everything that is ready to run: mailboxes that hold requests, alarms
// that are due, work beside the turns, and short steps that wait for a sync of the log. A
// few goroutines take one after another from one queue, because a new goroutine for each
// would have to grow its stack at each commit.
//
// The package knows nothing of objects. It sees them as a Runner, sees the store as a
// Log, and asks a func how many calls from outside are under way.
package crew

import (
	"runtime"
	"sync"

	"github.com/holdfast-dev/holdfast/seam"
)

// Crew runs runners. Its members are goroutines that take one runner after another, so
// that a burst of short ones costs few goroutines, and their stacks have grown already.
// Runners may wait as long as they like and hold up no other, because while one is left
// in the queue, a further member is on its way:
//
//	a queue is not empty  implies  spare
//
// Alarms have a queue of their own, and the members take from both queues in turn, so
// that a call does not wait behind a thousand alarms that are due.
type Crew struct {
	executor seam.Executor

	// mu guards the fields below. It is held for a few instructions only, and never while
	// a runner runs or a goroutine is started.
	mu     sync.Mutex
	queue  queue // of all but alarms
	alarms queue
	alarm  bool // the next runner is an alarm, if there is one
	spare  bool // a member was called and has yet to take its first runner

	members []*member // that have taken a runner, for Running
	free    []*member // to use again
}

// member is a goroutine that runs runners. Crew.mu guards its fields.
type member struct {
	index int    // in Crew.members
	now   Runner // the one that it took last
}

// maxFree bounds Crew.free, so that an unusual burst leaves no more memory behind.
const maxFree = 256

// queue is a queue of runners: those from head on. The places before head are nil, so
// that a runner that was taken is not kept in memory.
type queue struct {
	runners []Runner
	head    int
}

// Runner is something that is ready to run. It guards itself against a panic of the
// code that it runs. If Run ends its goroutine, the member goes with it.
type Runner interface{ Run() }

// Func is a function as a Runner.
type Func func()

// Run calls f.
func (f Func) Run() { f() }

// New returns a crew without members, which executor starts when they are needed.
func New(executor seam.Executor) *Crew { return &Crew{executor: executor} }

// Add puts runners at the end of the queue.
func (c *Crew) Add(rs ...Runner) { c.addTo(&c.queue, rs) }

// addAlarms puts runners at the end of the queue of alarms.
func (c *Crew) addAlarms(rs []Runner) { c.addTo(&c.alarms, rs) }

// addTo puts runners at the end of a queue and starts a member if none is on its way.
func (c *Crew) addTo(q *queue, rs []Runner) {
	c.mu.Lock()
	q.runners = append(q.runners, rs...)
	call := c.lacksSpare()
	c.mu.Unlock()
	if call {
		c.executor.Go("crew", c.serve)
	}
}

// lacksSpare reports whether a member must be called, which is then the spare. The caller
// holds mu, and calls the member after it has let mu go.
func (c *Crew) lacksSpare() bool {
	call := !c.spare && (!c.queue.empty() || !c.alarms.empty())
	c.spare = c.spare || call
	return call
}

// serve is a member: it takes and runs runners until the queues are empty, and ends then. The
// deferred call serves a runner that ends the goroutine.
func (c *Crew) serve() {
	growStack()
	m, r := c.take(nil)
	defer func() {
		if r != nil {
			c.leave(m)
		}
	}()
	for r != nil {
		r.Run()
		m, r = c.take(m)
	}
}

// growStack makes room on the goroutine's stack for a turn that reads the store.
// A new goroutine has 2 KiB; to grow by doubling in the midst of Pebble costs three
// copies of ever more frames, which was a fifth of a cold activation.
//
//go:noinline
func growStack() {
	var room [10 << 10]byte
	runtime.KeepAlive(&room)
}

// take returns the next runner for a member, or nil if the member ends. A caller without a
// member is the spare, which becomes one. If a runner is left after that, take calls the next
// spare, because the runner that the member takes now may wait for long.
func (c *Crew) take(m *member) (*member, Runner) {
	c.mu.Lock()
	if m == nil {
		c.spare = false
	}
	r := c.next()
	switch {
	case r == nil && m != nil:
		c.remove(m)
	case r != nil && m == nil:
		m = c.join()
	}
	if r != nil {
		m.now = r
	}
	call := r != nil && c.lacksSpare()
	c.mu.Unlock()
	if call {
		c.executor.Go("crew", c.serve)
	}
	return m, r
}

// join adds a member. The caller holds mu.
func (c *Crew) join() *member {
	m := new(member)
	if n := len(c.free); n > 0 {
		m, c.free = c.free[n-1], c.free[:n-1]
	}
	m.index = len(c.members)
	c.members = append(c.members, m)
	return m
}

// remove takes out a member that ends: the last one moves to its place. The caller holds mu.
func (c *Crew) remove(m *member) {
	last := len(c.members) - 1
	c.members[m.index] = c.members[last]
	c.members[m.index].index = m.index
	c.members[last], m.now = nil, nil
	c.members = c.members[:last]
	if len(c.free) < maxFree {
		c.free = append(c.free, m)
	}
}

// leave takes out a member with a runner that ends its goroutine.
func (c *Crew) leave(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(m)
}

// Running yields the runners that the members run now. One that has just ended may be among
// them. It holds the lock of the crew, so f must be quick and take no lock.
func (c *Crew) Running(f func(Runner)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		f(m.now)
	}
}

// next takes a runner out of the queues, or returns nil. It takes from both queues in
// turn, if neither is empty. The caller holds mu.
func (c *Crew) next() Runner {
	q, other := &c.queue, &c.alarms
	if c.alarm {
		q, other = other, q
	}
	c.alarm = !c.alarm
	if q.empty() {
		q = other
	}
	return q.take()
}

// empty reports whether the queue has no runner.
func (q *queue) empty() bool { return q.head == len(q.runners) }

// take returns the first runner, or nil.
func (q *queue) take() Runner {
	if q.empty() {
		return nil
	}
	r := q.runners[q.head]
	q.runners[q.head] = nil
	if q.head++; q.empty() {
		q.runners, q.head = q.shrunk(), 0
	}
	return r
}

// shrunk returns the slice of an empty queue for use again; nil after an unusual burst, so
// that its memory goes.
func (q *queue) shrunk() []Runner {
	const most = 4096
	if cap(q.runners) > most {
		return nil
	}
	return q.runners[:0]
}

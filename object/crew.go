package object

import (
	"runtime"
	"sync"

	"github.com/holdfast-dev/holdfast/seam"
)

// crew runs what is ready to run: turns that wait, alarms, works. Its members are
// tasks that take one runner after another, so that a burst of short ones costs
// few tasks, whose stacks have grown already. Runners may wait as long as they
// like and hold up no other: while one is left in the queue, a further member is
// on its way:
//
//	a queue is not empty  implies  spare
//
// Alarms have a queue of their own, and the members take from both in turn: what
// a call waits for goes ahead of a thousand alarms that are due.
type crew struct {
	executor seam.Executor

	mu     sync.Mutex
	queue  queue // of all but alarms
	alarms queue
	alarm  bool // the next runner is an alarm, if there is one
	spare  bool // a member was called and has yet to take its first runner
}

// queue is runners, from head on.
type queue struct {
	runners []runner
	head    int
}

// runner is something that is ready to run. It sees to it by itself that a panic
// ends what it must end; its member may go with it.
type runner interface{ run() }

// runFunc is a function as a runner.
type runFunc func()

func (f runFunc) run() { f() }

// add puts runners at the end of the queue.
func (c *crew) add(rs ...runner) { c.addTo(&c.queue, rs) }

// addAlarms puts runners at the end of the queue of alarms.
func (c *crew) addAlarms(rs []runner) { c.addTo(&c.alarms, rs) }

func (c *crew) addTo(q *queue, rs []runner) {
	c.mu.Lock()
	q.runners = append(q.runners, rs...)
	call := c.lacksSpare()
	c.mu.Unlock()
	if call {
		c.executor.Go("crew", c.serve)
	}
}

// lacksSpare reports whether a member must be called, which is then the spare.
func (c *crew) lacksSpare() bool {
	call := !c.spare && (!c.queue.empty() || !c.alarms.empty())
	c.spare = c.spare || call
	return call
}

// serve is a member.
func (c *crew) serve() {
	growStack()
	for r := c.take(true); r != nil; r = c.take(false) {
		r.run()
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

// take returns the next runner, or nil. Its caller is a new member if first.
func (c *crew) take(first bool) runner {
	c.mu.Lock()
	if first {
		c.spare = false
	}
	r := c.next()
	call := r != nil && c.lacksSpare()
	c.mu.Unlock()
	if call {
		c.executor.Go("crew", c.serve)
	}
	return r
}

// next takes a runner out of the queues, or returns nil.
func (c *crew) next() runner {
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

func (q *queue) empty() bool { return q.head == len(q.runners) }

// take returns the first runner, or nil.
func (q *queue) take() runner {
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

// shrunk is the empty queue, without the memory of an unusual burst.
func (q *queue) shrunk() []runner {
	const most = 4096
	if cap(q.runners) > most {
		return nil
	}
	return q.runners[:0]
}

package object

import (
	"sync"

	"github.com/holdfast-dev/holdfast/seam"
)

// crew runs what is ready to run: turns that wait, alarms, works. Its members are
// tasks that take one runner after another, so that a burst of short ones costs
// few tasks, whose stacks have grown already. Runners may wait as long as they
// like and hold up no other: while one is left in the queue, a further member is
// on its way:
//
//	queue not empty  implies  spare
type crew struct {
	executor seam.Executor

	mu    sync.Mutex
	queue []runner // from head on
	head  int
	spare bool // a member was called and has yet to take its first runner
}

// runner is something that is ready to run. It sees to it by itself that a panic
// ends what it must end; its member may go with it.
type runner interface{ run() }

// runFunc is a function as a runner.
type runFunc func()

func (f runFunc) run() { f() }

// add puts runners last.
func (c *crew) add(rs ...runner) {
	c.mu.Lock()
	c.queue = append(c.queue, rs...)
	call := !c.spare && c.head < len(c.queue)
	c.spare = c.spare || call
	c.mu.Unlock()
	if call {
		c.executor.Go("crew", c.serve)
	}
}

// serve is a member.
func (c *crew) serve() {
	for r := c.take(true); r != nil; r = c.take(false) {
		r.run()
	}
}

// take returns the next runner, or nil. Its caller is a new member if first.
func (c *crew) take(first bool) runner {
	c.mu.Lock()
	if first {
		c.spare = false
	}
	if c.head == len(c.queue) {
		c.mu.Unlock()
		return nil
	}
	r := c.queue[c.head]
	c.queue[c.head] = nil
	if c.head++; c.head == len(c.queue) {
		c.queue, c.head = c.shrunk(), 0
	}
	call := !c.spare && c.head < len(c.queue)
	c.spare = c.spare || call
	c.mu.Unlock()
	if call {
		c.executor.Go("crew", c.serve)
	}
	return r
}

// shrunk is the empty queue, without the memory of an unusual burst.
func (c *crew) shrunk() []runner {
	const most = 4096
	if cap(c.queue) > most {
		return nil
	}
	return c.queue[:0]
}

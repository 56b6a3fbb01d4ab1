package machine

import (
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
)

// Crew is the coroutines that run the tasks of one machine after another, and the
// counters of the watchdog. The zero Crew is ready for use.
type Crew struct {
	idle []*coroutine

	// running and beat are for the watchdog: the name of the task that runs, nil
	// between steps, and a count that changes with each step.
	running atomic.Pointer[string]
	beat    atomic.Uint64
	stuck   atomic.Bool  // Watch has given up: nothing more is to run
	looks   atomic.Int64 // of Watch, for its tests

	led      atomic.Bool           // Lead has been called
	met      atomic.Bool           // an intruder has been found: others are looked for
	intruder atomic.Pointer[error] // its description, until it is reported
}

// coroutine runs one task after another, so that tasks are cheap.
type coroutine struct {
	next  func() (done bool, ok bool)
	stop  func()
	yield func(done bool) bool
	m     *Machine
	task  *task

	exited bool // its task has called runtime.Goexit
}

func (c *Crew) coroutine() *coroutine {
	if n := len(c.idle); n > 0 {
		co := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return co
	}
	co := &coroutine{}
	co.next, co.stop = iter.Pull(co.work)
	return co
}

func (co *coroutine) work(yield func(bool) bool) {
	co.yield = yield
	for {
		co.m.body(co.task)
		co.m, co.task = nil, nil
		if !yield(true) {
			return
		}
	}
}

// discard ends the coroutine of a task that has called runtime.Goexit, and waits for that.
// The goroutine that calls stop ends by the same Goexit, so it is not the driver's.
func (co *coroutine) discard() {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		co.stop()
	}()
	<-ended
}

// Close lets the idle coroutines go.
func (c *Crew) Close() {
	for _, co := range c.idle {
		co.stop()
	}
	c.idle = nil
}

// TaskPanic is a panic in a task of a living process.
type TaskPanic struct {
	Task  string
	Value any
	Stack []byte
}

func (p *TaskPanic) Error() string {
	return fmt.Sprintf("task %q panicked: %v\n%s", p.Task, p.Value, p.Stack)
}

// TaskExit is a task of a living process that has called runtime.Goexit itself, not
// through seam.Exit.
type TaskExit struct {
	Task  string
	Stack []byte // of the call
}

func (e *TaskExit) Error() string {
	return fmt.Sprintf("task %q ended its goroutine by runtime.Goexit, as FailNow, Fatal and Skip of a testing.T do: "+
		"return an error instead, or fail the scenario with Fatalf of its Sim\n%s", e.Task, e.Stack)
}

var errStuck = errors.New("simulation: given up by the watchdog")

var errLivelock = errors.New("simulation: a million steps without time moving: some code loops without waiting")

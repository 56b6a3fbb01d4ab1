package machine

import (
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
)

// Crew is the coroutines that run the tasks of one machine after another, and the
// counters of the watchdog. The zero Crew is ready for use.
type Crew struct {
	idle []*coroutine

	// running and beat are for the watchdog: the name of the task that runs, nil
	// between steps, and a count that changes with each step.
	running atomic.Pointer[string]
	beat    atomic.Uint64
	stuck   atomic.Bool // Watch has given up: nothing more is to run

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

// Watch returns nil when done is closed, and an error that names the task and
// the remedy if one task runs for limit of real time without a step.
func (c *Crew) Watch(limit time.Duration, done <-chan struct{}) error {
	tick := time.NewTicker(limit)
	defer tick.Stop()
	last := c.beat.Load()
	for {
		select {
		case <-done:
			return nil
		case <-tick.C:
		}
		beat, name := c.beat.Load(), c.running.Load()
		if name == nil || beat != last {
			last = beat
			continue
		}
		c.stuck.Store(true)
		if err := c.Intruder(); err != nil {
			return err // most likely the task waits for that goroutine
		}
		return fmt.Errorf("simulation: task %q has not yielded for %v of real time: it waits where the simulation cannot see it, or never ends.\n"+
			"Remedy: wait through seams (Executor.Wait, Seams.Sleep, State.Await, State.Release) instead of a bare channel, <-ctx.Done(), time.Sleep or a mutex held across a wait.\n\n%s",
			*name, limit, standing(stuckStack(), isRuntime))
	}
}

// stuckStack is the stack of the coroutine that runs or blocks, if it can be told.
func stuckStack() string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	for _, g := range strings.Split(string(buf), "\n\n") {
		head, _, _ := strings.Cut(g, "\n")
		if strings.Contains(g, "machine.(*coroutine).work") && !strings.Contains(head, "[coroutine") {
			return g
		}
	}
	return ""
}

// standing puts before a stack where in the code under test it stands, and why.
func standing(stack string, isOther func(call string) bool) string {
	lines := strings.Split(stack, "\n")
	_, why, _ := strings.Cut(lines[0], "[")
	why, _, _ = strings.Cut(why, "]")
	for i := 1; i+1 < len(lines); i += 2 {
		if !isOther(lines[i]) {
			at, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
			return fmt.Sprintf("It stands at %s (%s).\n\n%s", at, why, stack)
		}
	}
	return stack
}

// isRuntime tells calls of Go itself and of the seams from code under test.
func isRuntime(call string) bool {
	path, _, _ := strings.Cut(call, "(")
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") || !strings.Contains(path, "/") && !strings.HasPrefix(path, "main.") ||
		strings.HasPrefix(path, "github.com/holdfast-dev/holdfast/seam.")
}

var errStuck = errors.New("simulation: given up by the watchdog")

var errLivelock = errors.New("simulation: a million steps without time moving: some code loops without waiting")

package machine

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/holdfast-dev/holdfast/seam"
)

// task is a function under way. It waits while ready is not nil.
type task struct {
	name string
	proc *Process // nil: a task outside of every process
	f    func()
	co   *coroutine // nil until it first runs

	ctx    context.Context
	ready  <-chan struct{}
	err    error // of the wait
	killed bool  // it is being unwound
	exits  bool  // it ends its goroutine on purpose, by seam.Exit
	calls  int   // seam calls since its process died
}

// run lets t go on until it yields or ends.
func (m *Machine) run(t *task) {
	crew := m.cfg.Crew
	co := t.co
	if co == nil {
		co = crew.coroutine()
		co.m, co.task, t.co = m, t, co
	}
	m.current = t
	crew.running.Store(&t.name)
	crew.beat.Add(1)
	done, _ := co.next()
	m.current = nil
	crew.running.Store(nil)
	switch {
	case !done:
	case co.exited:
		t.co = nil
		co.discard()
	default:
		t.co = nil
		crew.idle = append(crew.idle, co)
	}
}

// body runs the task's function and keeps its panics, and a runtime.Goexit, from
// the driver. A deferred function that panics during a Goexit does not stop it: guarded
// keeps the panic, the Goexit goes on, and body never returns.
func (m *Machine) body(t *task) {
	returned := false
	defer func() {
		if !returned {
			m.exited(t)
		}
	}()
	m.guarded(t)
	returned = true
}

// guarded runs the task's function and makes a panic the machine's failure.
func (m *Machine) guarded(t *task) {
	defer func() {
		r := recover()
		switch {
		case r == nil, t.unreal():
		case r == any(seam.Killed{}):
			m.fail(fmt.Errorf("task %q met the death of a process that is not its own", t.name))
		default:
			m.fail(&TaskPanic{Task: t.name, Value: r, Stack: debug.Stack()})
		}
	}()
	t.f()
}

// unreal reports whether the task belongs to a process that has died. Its unwinding
// happens in the simulation only, so it cannot fail.
func (t *task) unreal() bool { return t.killed || t.proc != nil && t.proc.dead }

// exited hands control back from a task that has called runtime.Goexit. Its coroutine
// runs no other task. The exit is a failure, unless the task has told it by Exiting.
func (m *Machine) exited(t *task) {
	if !t.exits && !t.unreal() {
		m.fail(&TaskExit{Task: t.name, Stack: debug.Stack()})
	}
	co := t.co
	co.exited = true
	co.yield(true)
}

// yield gives control back to the driver until the task is run again.
func (t *task) yield() { t.co.yield(false) }

// poll reports whether the wait of t is over, and keeps its error.
func (t *task) poll() bool {
	select {
	case <-t.ready:
		t.err = nil
		return true
	default:
	}
	if t.ctx.Err() != nil {
		t.err = seam.Cause(t.ctx)
		return true
	}
	return false
}

// wait parks the running task until ready yields or ctx ends.
func (m *Machine) wait(t *task, ctx context.Context, ready <-chan struct{}) error {
	t.ctx, t.ready = ctx, ready
	m.parked = append(m.parked, t)
	t.yield()
	t.ctx, t.ready = nil, nil
	return t.err
}

// pause lets other tasks go first.
func (m *Machine) pause(t *task) {
	m.ready = append(m.ready, t)
	t.yield()
}

// end unwinds t: it goes on with killed set, so that each of its seam calls
// panics, until its function returns.
func (m *Machine) end(t *task) {
	if t.co == nil {
		return
	}
	t.killed = true
	m.run(t)
}

// abandon takes the running task off its thread of control for good. Its
// coroutine is lost.
func (m *Machine) abandon(t *task) {
	co := t.co
	t.co = nil
	for {
		co.yield(false)
	}
}

// Spawn starts f as a task outside of every process.
func (m *Machine) Spawn(name string, f func()) {
	m.ready = append(m.ready, &task{name: name, f: f})
}

// InTask reports whether the caller runs in a task, rather than as the driver.
func (m *Machine) InTask() bool { return m.current != nil }

// Current is the process that the running task belongs to; nil for the driver
// and for tasks outside.
func (m *Machine) Current() *Process {
	if m.current == nil {
		return nil
	}
	return m.current.proc
}

// Wait parks a task that belongs to no process, as seam.Executor.Wait does.
func (m *Machine) Wait(ctx context.Context, ready <-chan struct{}) error {
	t := m.current
	if t == nil {
		panic("machine: the driver cannot wait")
	}
	err := m.wait(t, ctx, ready)
	if t.killed {
		panic(seam.Killed{})
	}
	return err
}

package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// maxCallsWhenDead bounds the calls of a task after its death, because code that
// recovers from seam.Killed and goes on calling would otherwise never end.
const maxCallsWhenDead = 1000

// Process is one life of the simulated program. It implements all seams.
type Process struct {
	m       *Machine
	number  int
	dead    bool
	unwound bool
}

var (
	_ seam.Steady = (*Process)(nil)
	_ seam.Exiter = (*Process)(nil)
	_ seam.Faulty = (*Process)(nil)
)

// Start returns a new process, the n-th of its machine.
func (m *Machine) Start(n int) *Process { return &Process{m: m, number: n} }

// Number tells which start of the program this is; the first is 1.
func (p *Process) Number() int { return p.number }

// Seams returns the four seams of the process.
func (p *Process) Seams() seam.Seams { return seam.Seams{Clock: p, Executor: p, Rand: p, Probe: p} }

// Dead reports whether the process has died.
func (p *Process) Dead() bool { return p.dead }

// Kill ends the process at once. The driver calls it between steps; a task of
// the process itself does not come back from it.
func (p *Process) Kill() {
	if p.dead {
		return
	}
	p.die()
	if p.m.current == nil {
		p.m.unwind(p)
		return
	}
	if p.m.current.proc == p {
		panic(seam.Killed{})
	}
}

func (p *Process) die() {
	p.dead = true
	p.m.dying = p
	if p.m.cfg.OnDeath != nil {
		p.m.cfg.OnDeath(p)
	}
}

// Live panics with seam.Killed if the process is dead. Everything that survives a
// process calls it first.
func (p *Process) Live() {
	p.m.Own()
	if !p.dead {
		return
	}
	p.m.cfg.Crew.own()
	if t := p.m.current; t != nil && t.proc == p {
		if t.calls++; t.calls > maxCallsWhenDead {
			p.m.fail(fmt.Errorf("task %q goes on after its process died: code that recovers panics must pass seam.Killed on unchanged", t.name))
			p.m.abandon(t)
		}
	}
	panic(seam.Killed{})
}

// Go implements seam.Executor.
func (p *Process) Go(name string, f func()) {
	p.Live()
	p.m.ready = append(p.m.ready, &task{name: name, proc: p, f: f})
}

// Wait implements seam.Executor.
func (p *Process) Wait(ctx context.Context, ready <-chan struct{}) error {
	p.Live()
	t := p.m.current
	if t == nil {
		return p.m.driveWait(p, ctx, ready)
	}
	select {
	case <-ready:
		p.maybePause(t)
		return nil
	default:
	}
	if ctx.Err() != nil {
		return seam.Cause(ctx)
	}
	err := p.m.wait(t, ctx, ready)
	p.Live()
	return err
}

// Exiting implements seam.Exiter. A goroutine that the machine does not know ends here, in
// each run, because its exit would otherwise be taken for that of the running task. A
// task outside of the process is not marked, because a scenario may not exit.
func (p *Process) Exiting() {
	p.Live()
	p.m.cfg.Crew.own()
	if t := p.m.current; t != nil && t.proc == p { // else it is reported
		t.exits = true
	}
}

// driveWait is a wait of the driver itself: of a test that calls into a host
// without a task of its own.
func (m *Machine) driveWait(p *Process, ctx context.Context, ready <-chan struct{}) error {
	w := &task{ctx: ctx, ready: ready}
	switch m.Drive(m.now.Add(time.Hour), w.poll) {
	case Done:
		return w.err
	case Died:
		panic(seam.Killed{})
	case Failed:
		return m.failure
	}
	return errors.New("simulation: the wait cannot end: no task is left that could end it")
}

// At implements seam.Probe.
func (p *Process) At(at seam.Point) {
	p.Live()
	t := p.m.current
	if t == nil || t.proc != p || p.m.cfg.OnPoint == nil {
		return
	}
	if p.m.cfg.OnPoint(p, at) {
		p.die()
		panic(seam.Killed{})
	}
	p.maybePause(t)
}

// Fault implements seam.Faulty.
func (p *Process) Fault(at seam.Point) bool {
	p.Live()
	return p.m.cfg.OnFault != nil && p.m.cfg.OnFault(p, at)
}

// maybePause lets another task go first, one time in four, unless the schedule
// is first come, first served.
func (p *Process) maybePause(t *task) {
	if p.m.cfg.Seed == 0 || p.m.rand.Uint64()&3 != 0 {
		return
	}
	p.m.pause(t)
	p.Live()
}

// Uint64 implements rand.Source.
func (p *Process) Uint64() uint64 {
	p.Live()
	return p.m.rand.Uint64()
}

// Now implements seam.Clock.
func (p *Process) Now() time.Time {
	p.Live()
	return p.m.now.Add(p.m.skew)
}

// Steady implements seam.Steady.
func (p *Process) Steady() time.Time {
	p.Live()
	return p.m.now
}

// AfterFunc implements seam.Clock.
func (p *Process) AfterFunc(d time.Duration, f func()) seam.Timer {
	p.Live()
	return p.m.after(p, d, f)
}

// AtFunc implements seam.Following.
func (p *Process) AtFunc(at time.Time, look time.Duration, f func()) seam.Timer {
	p.Live()
	return p.m.afterWall(p, at, look, f)
}

// unwind ends every task and timer of a dead process.
func (m *Machine) unwind(p *Process) {
	p.unwound = true
	m.timers.drop(p)
	of := func(t *task) bool { return t.proc == p }
	var doomed []*task
	for _, t := range slices.Concat(m.ready, m.parked) {
		if of(t) {
			doomed = append(doomed, t)
		}
	}
	m.ready = slices.DeleteFunc(m.ready, of)
	m.parked = slices.DeleteFunc(m.parked, of)
	for _, t := range doomed {
		m.end(t)
	}
}

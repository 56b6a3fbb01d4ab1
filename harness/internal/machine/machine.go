package machine

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// Epoch is the time at which every simulation starts.
var Epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// MaxStepsAtOneTime bounds the work done while virtual time stands still: more
// is taken for a loop that never ends.
const MaxStepsAtOneTime = 1_000_000

// Config says how a Machine behaves.
type Config struct {
	// Seed feeds randomness. With zero the schedule is first come, first served;
	// with any other, tasks are chosen at random and switch at points.
	Seed uint64
	// Crew runs the tasks. Default: a crew of the machine's own, which Close ends.
	Crew *Crew
	// OnPoint is told of each point that a living process reaches, and reports
	// whether the process dies there.
	OnPoint func(p *Process, at seam.Point) (dies bool)
	// OnDeath is told of a process at the moment of its death, before any of its
	// tasks is unwound.
	OnDeath func(p *Process)
	// OnTimer is asked by how much a timer of a process that is due is late.
	OnTimer func(p *Process) time.Duration
	// Careful looks at each call into the machine whether it comes from a task or
	// the driver, and fails if it does not. It takes the crew's Lead.
	Careful bool
	// OnFault decides whether a fault that the code under test offers strikes.
	OnFault func(p *Process, at seam.Point) bool
}

// Machine is a simulated computer. It is for one goroutine, the driver, and for
// the tasks that the driver runs.
type Machine struct {
	cfg     Config
	now     time.Time
	skew    time.Duration // of the wall clock that processes see
	dying   *Process      // died last
	timers  timerHeap
	seq     uint64 // orders timers of one instant
	rand    *rand.PCG
	ready   []*task
	parked  []*task // in the order in which they parked
	current *task   // nil: the driver runs
	steps   int     // since time moved
	total   int     // since New
	failure error
}

// New returns a machine at Epoch without a process.
func New(cfg Config) *Machine {
	if cfg.Crew == nil {
		cfg.Crew = &Crew{}
	}
	return &Machine{cfg: cfg, now: Epoch, rand: rand.NewPCG(cfg.Seed, 0x9e3779b97f4a7c15)}
}

// Now is the virtual time.
func (m *Machine) Now() time.Time { return m.now }

// Skew moves the wall clock that processes see by d. Timers run on, but those of AtFunc
// follow the clock.
func (m *Machine) Skew(d time.Duration) {
	m.skew += d
	for _, t := range m.timers {
		t.follow()
	}
	heap.Init(&m.timers)
}

// Steps is how often a task has run until it yielded, since the machine was made.
func (m *Machine) Steps() int { return m.total }

// Skewed is how far the wall clock of processes is ahead of Now.
func (m *Machine) Skewed() time.Duration { return m.skew }

// Uint64 returns the next number of the machine's own randomness.
func (m *Machine) Uint64() uint64 { return m.rand.Uint64() }

// Failure is the reason for which the simulation cannot go on: a panic in a task, an
// endless loop, a task that ignores its death.
func (m *Machine) Failure() error { return m.failure }

// Outcome tells why Drive came back.
type Outcome int

const (
	Done   Outcome = iota // the condition holds
	Idle                  // nothing is left to do up to the limit, where time now stands
	Died                  // a process died, and is unwound
	Failed                // see Failure
)

// Drive runs tasks until done holds, and moves time to the next timer, up to
// limit, whenever nothing else is left to do. A nil done never holds.
func (m *Machine) Drive(limit time.Time, done func() bool) Outcome {
	for {
		switch {
		case m.cfg.Crew.stuck.Load():
			m.fail(errStuck)
			return Failed
		case m.intruded():
			return Failed
		case done != nil && done():
			return Done
		}
		ran, died := m.step()
		switch {
		case died:
			return Died
		case ran, m.failure != nil:
			continue
		case !m.sleep(limit):
			return Idle
		}
	}
}

// step runs one task until it yields, and unwinds its process if that died.
func (m *Machine) step() (ran, died bool) {
	m.wake()
	m.fire()
	if len(m.ready) == 0 {
		return false, false
	}
	if m.steps++; m.steps > MaxStepsAtOneTime {
		m.fail(errLivelock)
		return false, false
	}
	m.total++
	t := m.pick()
	m.run(t)
	if p := m.dying; p != nil && !p.unwound {
		m.unwind(p)
		return true, true
	}
	return true, false
}

func (m *Machine) pick() *task {
	i := 0
	if m.cfg.Seed != 0 && len(m.ready) > 1 {
		i = int(m.rand.Uint64() % uint64(len(m.ready)))
	}
	t := m.ready[i]
	m.ready = slices.Delete(m.ready, i, i+1)
	return t
}

// wake moves each parked task to the ready list when its wait is over.
func (m *Machine) wake() {
	kept := m.parked[:0]
	for _, t := range m.parked {
		if t.poll() {
			m.ready = append(m.ready, t)
		} else {
			kept = append(kept, t)
		}
	}
	clear(m.parked[len(kept):])
	m.parked = kept
}

// sleep moves time to the next timer, and reports false if none is due by limit,
// where time then stands.
func (m *Machine) sleep(limit time.Time) bool {
	next, ok := m.timers.next()
	if !ok || next.After(limit) {
		if limit.After(m.now) {
			m.now, m.steps = limit, 0
		}
		return false
	}
	if next.After(m.now) {
		m.now, m.steps = next, 0
	}
	return true
}

// intruded reports whether the machine has failed, by an intruder too.
func (m *Machine) intruded() bool {
	if m.cfg.Crew.intruder.Load() != nil {
		m.fail(m.cfg.Crew.Intruder())
	}
	return m.failure != nil
}

func (m *Machine) fail(err error) {
	if m.failure == nil {
		m.failure = err
	}
}

// Close ends every task, whether its process lives or not, and lets the crew
// go on to the next machine. The machine must not be used afterwards.
func (m *Machine) Close() {
	m.cfg.OnPoint, m.cfg.OnDeath, m.cfg.OnTimer, m.cfg.OnFault, m.current = nil, nil, nil, nil, nil
	for len(m.ready)+len(m.parked) > 0 {
		all := slices.Concat(m.ready, m.parked)
		m.ready, m.parked = nil, nil
		for _, t := range all {
			if t.proc != nil {
				t.proc.dead = true
			}
		}
		for _, t := range all {
			m.end(t)
		}
	}
}

// Crew is the crew that runs the tasks of m.
func (m *Machine) Crew() *Crew { return m.cfg.Crew }

// Abort makes err the machine's failure, and does not come back to the task that
// calls it.
func (m *Machine) Abort(err error) {
	m.fail(err)
	if t := m.current; t != nil {
		_ = m.wait(t, context.Background(), nil)
		panic(seam.Killed{})
	}
}

package harness

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Scenario builds objects and drives time. It is run from scratch for each schedule
// of crashes, and must do the same each time until the schedule's crash.
type Scenario func(s *Sim)

// callLimit bounds the virtual time that one call, or one start, may take. From the
// third crash on it is heldLimit, because work that has died with three processes in a
// row waits for its trial, or for twice the life of the last process, up to an hour
// each (A8, R7).
const (
	callLimit = 10 * time.Minute
	heldLimit = 3 * time.Hour
)

// patience is the virtual time that a call may take from now on.
func (s *Sim) patience() time.Duration {
	if s.crashes > 2 {
		return heldLimit
	}
	return callLimit
}

// Sim is one simulated world: a disk, a clock, an outside, and at most one
// process. It is for the goroutine of its scenario, except where a method says
// that handlers and clients may call it.
type Sim struct {
	cfg      *Config
	schedule schedule
	m        *machine.Machine
	disk     disk

	main    func(context.Context, *Process) error // the main function of a process; nil before Boot
	defs    []object.Definition
	host    *object.Host // of the living process, if it runs one
	proc    *machine.Process
	starts  int
	crashes int
	next    int    // of the schedule's crashes
	keep    int    // how many commits survive the crash under way
	torn    uint64 // not 0: the seed for the blocks that are left of a torn write

	crashedAt []int // places in the timeline of the schedule's crashes so far

	stayDown bool // no process follows the one that dies now
	orderly  bool // the process that dies now was shut down
	down     bool // the last process was shut down, and none is wanted

	up    chan struct{} // closed when the next process is ready; nil: none is expected
	calls map[*call]struct{}

	faults       Faults // that may strike now
	struck       map[faultKind]int
	came         []bool // which faults of the schedule have struck
	struckAt     []int  // places in the timeline of the schedule's faults so far
	chanceCounts map[seam.Point]int
	messages     seenMessages
	ends         seenEnds
	callsBefore  callsBefore
	broken       *broken // the store that failed last; nil: none has
	ghosts       []ghost // sent by dead processes, not arrived yet

	timeline *timeline
	gate     gate
	shadow   *memstore.Store // nil: no checker wants it
	random   chooser         // instead of the schedule; nil: the schedule rules
	world    *World
	history  History // of the calls that Record noted
	settling bool

	finals    []final
	sometimes map[string]bool
	problem   *Failure
	concerned string // the object that the problem is about, if a checker knows
	scenes    scenes
}

// final is a check to make when the scenario has settled.
type final struct {
	name string
	ok   func() error
}

func newSim(cfg *Config, p schedule, crew *machine.Crew, line *timeline, careful bool) *Sim {
	s := &Sim{cfg: cfg, schedule: p, disk: cfg.newDisk(), timeline: line, calls: make(map[*call]struct{}), sometimes: make(map[string]bool)}
	s.shadow = newShadow(cfg)
	s.world = &World{s: s}
	s.m = machine.New(machine.Config{
		Seed: p.seed, Crew: crew, Careful: careful, OnPoint: s.onPoint, OnDeath: s.onDeath, OnTimer: s.onTimer, OnFault: s.onFault,
	})
	return s
}

// Context is the context for calls of the scenario. It never ends.
func (s *Sim) Context() context.Context { return context.Background() }

// Now is the virtual time. It begins at the start of 2026. Handlers and clients
// may call it.
func (s *Sim) Now() time.Time { return s.m.Now() }

// Crashes is the number of crashes so far.
func (s *Sim) Crashes() int { return s.crashes }

// Process is one life of the simulated program.
type Process struct {
	// Seams are the clock, executor, random source and probe that the program
	// must use for everything.
	Seams seam.Seams
	// Store are options that open the store of the simulation.
	Store storage.Options
	// Number counts the starts; the first is 1.
	Number int
}

// Boot starts a process that runs main, and returns when main does. Each time
// the process has died, the next one runs main again. Host is built on it; use it
// for a program without a host. An error of main ends the test.
func (s *Sim) Boot(main func(ctx context.Context, p *Process) error) {
	s.onDriver("Boot")
	s.main = main
	s.boot()
}

// boot starts processes until one has run its main to the end.
func (s *Sim) boot() {
	s.down = false
	if s.up == nil {
		s.up = make(chan struct{})
	}
	for !s.tryBoot() {
		s.rest()
	}
	close(s.up)
	s.up = nil
	s.arrive()
}

// tryBoot starts one process, and reports false if it died before its main was
// through.
func (s *Sim) tryBoot() bool {
	s.starts++
	s.proc = s.m.Start(s.starts)
	seams := s.proc.Seams()
	seams.Probe = &processProbe{Process: s.proc, s: s, turns: make(map[any]*watchedTurn)}
	engine, err := s.disk.open(seams)
	if err != nil {
		s.Fatalf("the store cannot be opened after crash %d: %v", s.crashes, err)
	}
	s.scenes.opened(s.disk)
	p := &Process{
		Seams:  seams,
		Number: s.starts,
		Store: storage.Options{
			Engine: s.guard(engine, s.proc), Shards: s.cfg.shards, MinFreeBytes: -1, Seams: seams,
		},
	}
	ended := false
	s.proc.Go("main", func() {
		err = s.main(context.Background(), p)
		ended = true
	})
	switch s.m.Drive(s.m.Now().Add(s.patience()), func() bool { return ended }) {
	case machine.Died:
		return false
	case machine.Failed:
		s.abort(s.m.Failure())
	case machine.Idle:
		s.Fatalf("start %d of the process does not come to its end: it waits for an event that never comes", s.starts)
	}
	if err != nil && s.failed(s.proc) {
		s.end(s.proc)
		return false
	}
	if err != nil {
		s.Fatalf("start %d of the process: %v", s.starts, err)
	}
	return true
}

// drive runs the world until done holds, or until limit. Processes that die are
// replaced.
func (s *Sim) drive(limit time.Time, done func() bool) bool {
	for {
		switch s.m.Drive(limit, done) {
		case machine.Done:
			return true
		case machine.Idle:
			return false
		case machine.Failed:
			s.abort(s.m.Failure())
		case machine.Died:
			s.rest()
			s.boot()
		}
	}
}

// rest checks the store that a crash has left, and lets the downtime pass.
func (s *Sim) rest() {
	s.checkCrash()
	if s.cfg.downtime > 0 {
		s.m.Drive(s.m.Now().Add(s.cfg.downtime), nil)
	}
}

// Advance lets d of virtual time pass: timers fire in order, and all work that
// they bring is done. Only the scenario itself may call it.
func (s *Sim) Advance(d time.Duration) {
	s.onDriver("Advance")
	s.drive(s.m.Now().Add(d), nil)
}

// RunUntilIdle does all work there is without letting time pass. Only the
// scenario itself may call it.
func (s *Sim) RunUntilIdle() {
	s.onDriver("RunUntilIdle")
	s.drive(s.m.Now(), nil)
}

// Sleep waits for d of virtual time, in a client that Go started; in the
// scenario it is Advance.
func (s *Sim) Sleep(d time.Duration) {
	if !s.m.InTask() {
		s.Advance(d)
		return
	}
	done := make(chan struct{})
	s.m.AfterFunc(d, func() { close(done) })
	s.wait(done)
}

// SleepContext is Sleep that ends with ctx; it then returns the cause of ctx. Handlers
// and clients may call it; the work of a job has a Sleep of its own, which needs no
// Sim.
func (s *Sim) SleepContext(ctx context.Context, d time.Duration) error {
	if !s.m.InTask() {
		s.Advance(d)
		return context.Cause(ctx)
	}
	done := make(chan struct{})
	s.m.AfterFunc(d, func() { close(done) })
	if p := s.m.Current(); p != nil {
		return p.Wait(ctx, done)
	}
	return s.m.Wait(ctx, done)
}

// Go starts a client: a task outside of the process, which survives its crashes
// and may call Invoke, Retry, Sleep and Must.
func (s *Sim) Go(name string, fn func()) {
	s.m.Own()
	s.m.Spawn(name, fn)
}

// wait parks the running task until ready is closed.
func (s *Sim) wait(ready <-chan struct{}) {
	if p := s.m.Current(); p != nil {
		_ = p.Wait(context.Background(), ready)
		return
	}
	_ = s.m.Wait(context.Background(), ready)
}

func (s *Sim) onDriver(method string) {
	s.m.Own()
	if s.m.InTask() {
		s.Fatalf("%s is for the scenario itself: a handler or client may use Sleep", method)
	}
}

// settle ends the scenario: no more crashes, and time for everything to come to
// rest.
func (s *Sim) settle() {
	s.settling = true
	s.timeline.close()
	if s.proc != nil && s.proc.Dead() && !s.down {
		s.boot()
	}
	longer := s.calm()
	s.drive(s.m.Now(), nil)
	s.drive(s.m.Now().Add(s.cfg.settle+longer), nil)
	s.checkStored()
	for _, ch := range s.cfg.checks {
		if ch.end != nil {
			s.report(ch.name, ch.promise, ch.end(s))
		}
	}
	for _, f := range s.finals {
		s.report(f.name, "", f.ok())
	}
}

// checkCrash makes the checks of a store after a crash.
func (s *Sim) checkCrash() {
	s.checkStored()
	for _, ch := range s.cfg.checks {
		if ch.crashed != nil {
			ch.crashed(s, s.Store())
		}
	}
}

// checkStored makes the checks that each stored state must pass.
func (s *Sim) checkStored() {
	var view *storedState
	for _, ch := range s.cfg.checks {
		if ch.stored == nil {
			continue
		}
		if view == nil {
			var err error
			if view, err = openView(s.disk, s.cfg.shards); err != nil {
				s.Fatalf("open the stored state: %v", err)
			}
		}
		s.report(ch.name, ch.promise, ch.stored(s, view))
	}
}

// Store is a store opened over a copy of all that is stored now, apart from the host,
// so that reads of it cannot disturb the simulation.
func (s *Sim) Store() *storage.Store {
	view, err := openView(s.disk, s.cfg.shards)
	if err != nil {
		s.Fatalf("open the stored state: %v", err)
	}
	return view
}

func (s *Sim) close() {
	s.m.Close()
	s.disk.close()
}

// String names the simulation in messages.
func (s *Sim) String() string { return fmt.Sprintf("simulation %s", s.schedule) }

package harness

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// Kind is a way for a process to end.
type Kind int

const (
	// Kill ends the process. Any number of the unsynced commits survive, but never a
	// later one without an earlier one.
	Kill Kind = iota
	// PowerLoss ends the machine: nothing survives that was not synced.
	PowerLoss
	// Torn ends the machine in the midst of a write: each block of 4 KiB of the log's
	// unsynced end is on the disk or not, and the store must read a prefix of the
	// commits from it. MapStore keeps some prefix.
	Torn
)

// ErrDown is returned by calls while no process runs and none is on its way.
var ErrDown = errors.New("harness: the process is down: Restart it first")

// onPoint notes a point, and decides whether the process dies there.
func (s *Sim) onPoint(p *machine.Process, at seam.Point) bool {
	hit := s.timeline.pass(at, s)
	s.gate.pass(at, s)
	switch at.Name {
	case "message/deliver":
		s.messages.give(at.Object)
	case "commit/after":
		s.committed(at.Object)
	}
	if s.settling {
		return false
	}
	if s.dies(hit) {
		return true
	}
	if s.faults != (Faults{}) {
		s.delay(p, hit.place)
	}
	return false
}

// dies reports whether the process crashes at a point.
func (s *Sim) dies(at hit) bool {
	if s.random != nil {
		c, dies := s.random.crash()
		if dies {
			c.at = at.String()
			s.keep, s.torn = c.keep, c.torn
			s.schedule.crashes = append(s.schedule.crashes, c)
			s.next++
		}
		return dies
	}
	if s.next >= len(s.schedule.crashes) || !at.named(s.schedule.crashes[s.next].at) {
		return false
	}
	s.keep, s.torn = s.schedule.crashes[s.next].keep, s.schedule.crashes[s.next].torn
	s.next++
	s.crashedAt = append(s.crashedAt, len(s.timeline.hits)-1)
	return true
}

// tear takes the disk from a process that dies in the midst of a write, and
// returns how many of the unsynced commits survive.
func (s *Sim) tear(seed uint64) int {
	kept, err := s.disk.tear(seed, s.shadow)
	if err != nil {
		s.fail(promisePrefix.String(), "after a torn write: %v", err)
	}
	return kept
}

// onDeath takes the disk from a process that dies and tells its callers.
func (s *Sim) onDeath(*machine.Process) {
	unsynced := s.disk.unsynced()
	kept := min(s.keep, unsynced)
	if !s.orderly {
		s.scenes.died(s.disk)
	}
	if torn := s.torn; torn != 0 {
		kept = s.tear(torn)
	} else {
		s.disk.crash(kept)
	}
	s.torn = 0
	if s.shadow != nil {
		// Batches come while a log appends, so the shadow was not synced with each sync.
		durable := s.shadow.Unsynced() - unsynced
		s.shadow = s.shadow.Crash(durable + kept)
	}
	s.gate.died(unsynced - kept)
	s.host = nil
	if s.orderly {
		s.timeline.note(s.elapsed(), "shut down in order")
	} else {
		s.crashes++
		s.timeline.crash(s, kept, unsynced)
	}
	if !s.stayDown && s.up == nil {
		s.up = make(chan struct{})
	}
	for c := range s.calls {
		c.lose()
	}
	clear(s.calls)
}

// Crash ends the process now. It stays down until Restart.
func (s *Sim) Crash(kind Kind) {
	s.onDriver("Crash")
	if !s.alive() {
		s.Fatalf("Crash: %v", ErrDown)
	}
	s.keep = 0
	switch n := s.disk.unsynced(); {
	case kind == Torn:
		s.torn = s.m.Uint64() | 1
	case kind == Kill && n > 0:
		s.keep = int(s.m.Uint64() % uint64(n+1))
	}
	s.stayDown = true
	s.proc.Kill()
	s.stayDown = false
	s.checkCrash()
}

func (s *Sim) alive() bool { return s.proc != nil && !s.proc.Dead() }

// RestartOption changes the process that Restart starts.
type RestartOption func(*Sim)

// WithCode starts the next process with other definitions, as a deployment does.
func WithCode(defs ...object.Definition) RestartOption {
	return func(s *Sim) { s.defs = defs }
}

// Restart starts the process again. If it runs, it is shut down in order first.
func (s *Sim) Restart(opts ...RestartOption) {
	s.onDriver("Restart")
	if s.alive() {
		s.Shutdown()
	}
	for _, o := range opts {
		o(s)
	}
	s.boot()
}

// Shutdown ends the host in order. It stays down until Restart. If a planned
// crash comes meanwhile, the process has died instead.
func (s *Sim) Shutdown() {
	s.onDriver("Shutdown")
	if !s.alive() {
		s.Fatalf("Shutdown: %v", ErrDown)
	}
	host, p := s.host, s.proc
	s.stayDown = true
	defer func() { s.stayDown, s.orderly = false, false }()
	var err error
	ended := false
	p.Go("shutdown", func() {
		if host != nil {
			err = host.Shutdown(context.Background())
		}
		ended = true
	})
	switch s.m.Drive(s.m.Now().Add(s.patience()), func() bool { return ended }) {
	case machine.Failed:
		s.abort(s.m.Failure())
	case machine.Idle:
		s.Fatalf("Shutdown does not come to its end")
	case machine.Died:
		s.checkCrash()
		return
	}
	if s.failed(p) {
		s.end(p)
		s.checkCrash()
		return
	}
	if err != nil {
		s.Fatalf("Shutdown: %v", err)
	}
	s.orderly = host != nil
	s.down = true
	p.Kill()
}

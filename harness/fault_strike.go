package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// exitWithin is how long a process lives on after its store has failed, so that the
// program can notice Host.Done and exit.
const exitWithin = time.Second

// delay lets time pass at a point that is late: the step takes longer, or the clock
// jumps.
func (s *Sim) delay(p *machine.Process, at place) {
	if !lateAt(at.Name) {
		return
	}
	if f, ok := s.strikesAt(clockJump, at); ok {
		s.m.Skew(f.by)
	}
	if f, ok := s.strikesAt(slow, at); ok {
		s.sleepIn(p, f.by)
	}
}

// sleepIn lets the running task of p wait for d.
func (s *Sim) sleepIn(p *machine.Process, d time.Duration) {
	done := make(chan struct{})
	s.m.AfterFunc(d, func() { close(done) })
	_ = p.Wait(context.Background(), done)
}

// onTimer is by how much a timer that is due is late.
func (s *Sim) onTimer(*machine.Process) time.Duration {
	f, _ := s.strikes(slow, atTimer, "")
	return f.by
}

// onFault decides the faults that the code under test offers by itself.
func (s *Sim) onFault(_ *machine.Process, at seam.Point) bool {
	kind := map[string]faultKind{
		seam.FaultTimerLost: dropWake, seam.FaultAlarmTwice: dupAlarm,
		seam.FaultMessageLate: lateMessage, seam.FaultMessageTwice: dupMessage,
	}[at.Name]
	_, ok := s.strikes(kind, at.Name, at.Object)
	return ok
}

// broken is a store that has failed on purpose.
type broken struct {
	p    *machine.Process
	keep int // commits that survive the exit of p
	err  error
}

// breaks makes the store of p fail, if a fault says so: nothing that p writes is
// taken from then on, and p is ended.
func (s *Sim) breaks(p *machine.Process, at string) error {
	if s.broken != nil && s.broken.p == p {
		return s.broken.err
	}
	f, ok := s.strikes(failCommit, at, "")
	if !ok {
		return nil
	}
	s.broken = &broken{p, f.keep, fmt.Errorf("%w at %s", errDisk, at)}
	s.m.AfterFunc(exitWithin, func() { s.exit(p) })
	return s.broken.err
}

// failed reports whether the store of p has failed on purpose.
func (s *Sim) failed(p *machine.Process) bool { return s.broken != nil && s.broken.p == p }

// exit ends a process after its store has failed.
func (s *Sim) exit(p *machine.Process) {
	if p.Dead() {
		return
	}
	if s.host != nil && s.host.Err() == nil {
		s.fail(promiseEnds.String(), "the host goes on %v after its store has failed", exitWithin)
	}
	s.end(p)
}

// end kills a process after its store has failed.
func (s *Sim) end(p *machine.Process) {
	s.keep = s.broken.keep
	p.Kill()
}

// unanswered reports whether a call has met a store that has failed, so that its
// client hears nothing before the process exits: the call may have happened or
// not. A reply to a call that began after the failure is the host's fault.
func (s *Sim) unanswered(p *machine.Process, object string, beganBroken bool, err error) bool {
	if err == nil && beganBroken {
		s.fail(promiseEnds.String(), "a call to %s was acknowledged after the store had failed", object)
	}
	return s.failed(p) && errors.Is(err, storage.ErrStorage)
}

// ghost is an effect or a reply that a dead process has sent.
type ghost struct {
	late    time.Duration
	arrives func()
}

// haunts decides whether the effect or reply of the running task of p arrives only when
// the next process has begun. Then p dies, and haunts does not return.
func (s *Sim) haunts(p *machine.Process, at, object string, arrives func()) {
	f, ok := s.strikes(zombie, at, object)
	if !ok {
		return
	}
	s.ghosts = append(s.ghosts, ghost{f.by, arrives})
	s.keep = f.keep
	p.Kill()
}

// arrive delivers the ghosts of dead processes.
func (s *Sim) arrive() {
	for _, g := range s.ghosts {
		s.m.AfterFunc(g.late, g.arrives)
	}
	s.ghosts = nil
}

// calm takes back the effects of faults when the scenario has ended, for example a jump
// of the clock, and returns how much longer the run may take to settle.
func (s *Sim) calm() time.Duration {
	s.m.Skew(-s.m.Skewed())
	if s.down || s.proc == nil {
		s.arrive()
	}
	var longer time.Duration
	for _, f := range s.schedule.faults {
		longer += f.by.Abs()
	}
	if s.struck[dropWake] > 0 && s.alive() && s.host != nil {
		s.proc.Go("scrubber", s.host.RecheckAlarms)
	}
	return longer
}

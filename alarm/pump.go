package alarm

import (
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// The pump is the task that fires and reads. It exists while there is something
// to do; Set, Clear, Done and the timer start it and never do its work.

// promoteMax is how many nodes become queued under one hold of the lock.
const promoteMax = 1024

// settle leaves the scheduler with a pump if there is work, and otherwise with a
// timer if any node is held. Each change of the nodes ends with it.
func (s *Scheduler) settle() {
	switch {
	case s.stopped || s.pumping:
	case s.hasWork():
		s.startPump()
	case len(s.line) == 0:
		s.disarm()
	default:
		s.arm()
	}
}

// hasWork leaves out waiting nodes that are due: arm finds those.
func (s *Scheduler) hasWork() bool {
	return len(s.thirsty) > 0 || s.due.len > 0 && s.flying < s.cfg.InFlight
}

func (s *Scheduler) startPump() {
	s.pumping = true
	s.cfg.Seams.Executor.Go("alarm/pump", s.pump)
}

// arm sees to it that the timer rings no later than the first node is due, and
// keeps one that rings earlier: it will be armed again then. One that should have
// rung is not waited for. A clock that is not seam.Following may jump unnoticed, so the
// timer rings each Recheck too, and ring looks at the clock.
func (s *Scheduler) arm() {
	first, now := s.line[0].pos.at, s.now()
	if s.timer != nil && s.timerAt <= first && s.timerAt > now {
		return
	}
	if first <= now {
		s.startPump()
		return
	}
	s.disarm()
	no := s.timerNo
	ring := func() { s.ring(no) }
	if clock, ok := s.cfg.Seams.Clock.(seam.Following); ok {
		s.timerAt = first
		s.timer = clock.AtFunc(time.Unix(0, first), s.cfg.Recheck, ring)
		return
	}
	wait := min(time.Duration(first-now), s.cfg.Recheck)
	s.timerAt = now + int64(wait)
	s.timer = s.cfg.Seams.Clock.AfterFunc(wait, ring)
}

func (s *Scheduler) disarm() {
	s.timerNo++
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// ring runs when the timer with that number rings.
func (s *Scheduler) ring(no uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if no != s.timerNo || s.cfg.Seams.Fault(seam.FaultTimerLost, "") {
		return
	}
	s.timer = nil
	s.settle()
}

// pump fires and reads in turn, so that neither keeps the other waiting.
func (s *Scheduler) pump() {
	for {
		fired := s.fire()
		read := s.refill()
		if !fired && !read && s.rest() {
			return
		}
	}
}

// rest ends the pump if there is nothing left to do.
func (s *Scheduler) rest() bool {
	s.mu.Lock()
	if !s.stopped && s.hasWork() {
		s.mu.Unlock()
		return false
	}
	s.pumping = false
	s.settle()
	stopped, err := s.stopped, s.err
	s.mu.Unlock()
	if stopped {
		close(s.ended)
	}
	if err != nil && s.cfg.OnError != nil {
		s.cfg.OnError(err)
	}
	return true
}

// fire hands one batch to the host, and reports whether there may be more to do.
func (s *Scheduler) fire() bool {
	s.mu.Lock()
	more := s.promote()
	s.take()
	s.mu.Unlock()
	if len(s.batch) == 0 {
		return more
	}
	s.cfg.Fire(s.batch)
	return true
}

// promote moves nodes that are due from the timeline to the queues. It reports
// whether it stopped before the last.
func (s *Scheduler) promote() bool {
	now := s.now()
	for range promoteMax {
		if len(s.line) == 0 || s.line[0].pos.at > now {
			return false
		}
		n := s.line[0]
		s.line.remove(n)
		s.due.push(n)
	}
	return true
}

// take moves queued nodes into flight and their entries into the batch. A node
// that is no longer due, because the clock was put back, waits again.
func (s *Scheduler) take() {
	clear(s.batch)
	s.batch = s.batch[:0]
	now := s.now()
	for s.due.len > 0 && s.flying < s.cfg.InFlight && len(s.batch) < s.cfg.Batch {
		n := s.due.pop()
		if n.pos.at > now {
			s.line.push(n)
			continue
		}
		n.in, n.changed = inFlight, false
		s.flying++
		s.batch = append(s.batch, n.Entry)
		sh := &s.shards[n.Shard]
		sh.held--
		s.wantMore(sh)
	}
}

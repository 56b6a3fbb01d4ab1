package object

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// # Suspension
//
// Another process can take a replicated log over while its owner is cut off from it. Nothing that the owner commits counts
// then, but its work would go on beside that of the next owner. So a host over a log asks it, while anything runs, whether it
// is the owner still, and stops its work while it gets no answer (N5). The order of events:
//
//  1. A turn begins and wakes the watch. Work and alarms begin in turns, so the watch is awake while anything runs.
//  2. look asks the log when the newest confirmation is a second old, by a sync without a commit. If commits are synced
//     anyway, each of them is a confirmation, and nothing is asked.
//  3. suspend, at the look two seconds after the newest confirmation: the contexts of all works end with ErrSuspended. From
//     then on no work begins (holds), due alarms wait (await) and messages (deferred), and so do unconfirmed replies.
//  4. The question stays open until the log answers. An answer tells of the moment at which its sync began, which may be long
//     ago, so answered asks again until that is less than two seconds ago.
//  5. resume: work that was held begins, alarms fly, messages are handed over again, and the job types run again what was cut off.
//  6. If nothing runs, look lets the watch rest.
//
// If the log has another owner, the answer is the end of the store, and so of the host (O13).
//
// A claim comes after the newest confirmation, and the next owner recovers works unclaimedFor after its claim. So what is cut off
// suspendAfter after the confirmation has a second to return.

const (
	confirmEvery = time.Second     // a host with anything running asks so long after the newest confirmation
	suspendAfter = 2 * time.Second // and suspends so long after it
	// unclaimedFor is how long the recovery of works waits after an opening over a log whose owner before has not closed
	// it. It is longer than suspendAfter by the time that works have to return.
	unclaimedFor = 3 * time.Second
)

// suspension is the watch of a host over a log, and what it holds back.
type suspension struct {
	host  *Host
	opens time.Time   // steady: no work is recovered before; zero after an end in order
	awake atomic.Bool // a look is planned, or the host is suspended
	off   atomic.Bool // the host is suspended; it changes under mu

	mu      sync.Mutex // guards the fields below; no other mutex is locked under it
	woken   time.Time  // steady: since then anything runs
	asking  bool       // the log was asked and has not answered
	closed  bool       // the host ends: nothing is held any more
	began   uint64     // works that have begun
	works   map[*Routine]uint64
	held    []*startedRoutine
	resumed chan struct{} // closed by resume; nil: nobody waits for it
	then    []func()      // steps of after
	last    time.Time     // the wall time at which the newest suspension ended
}

// newSuspension returns the watch of a host whose store is open, or nil on one machine.
func newSuspension(h *Host) *suspension {
	if !h.store.OverLog() {
		return nil
	}
	s := &suspension{host: h, works: make(map[*Routine]uint64)}
	if p := h.store.Previous(); p.Epoch > 0 && !p.Clean {
		s.opens = h.seams.Steady().Add(unclaimedFor)
	}
	return s
}

// wake plans the first look, because a turn begins while the watch rests.
func (s *suspension) wake() {
	if !s.awake.CompareAndSwap(false, true) {
		return
	}
	s.begin()
	s.host.seams.Clock.AfterFunc(confirmEvery, s.look)
}

// begin notes that something runs from now on.
func (s *suspension) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.woken = s.host.seams.Steady()
}

// look asks, suspends or rests, and plans the next look. The timer calls it. A suspended host needs none.
func (s *suspension) look() {
	if s.ended() || s.rests() {
		return
	}
	next := confirmEvery
	switch age := s.age(); {
	case age >= suspendAfter:
		s.suspend()
		return
	case age >= confirmEvery:
		s.ask()
		next = suspendAfter - age
	default:
		next -= age
	}
	s.host.seams.Clock.AfterFunc(next, s.look)
}

// ended reports whether nothing is to be watched any more: all that ran was cut off.
func (s *suspension) ended() bool { return s.host.lifecycle.ctx.Err() != nil }

// rests lets the watch rest if nothing runs, and reports whether it does. An activity that begins before awake is cleared is
// seen by the second look at busy, and a turn that begins after it wakes the watch.
func (s *suspension) rests() bool {
	busy := &s.host.lifecycle.busy
	if busy.Load() > 0 {
		return false
	}
	s.awake.Store(false)
	if busy.Load() == 0 || !s.awake.CompareAndSwap(false, true) {
		return true
	}
	s.begin()
	return false
}

// age is the time since the newest confirmation, or since something began to run if that is less.
func (s *suspension) age() time.Duration {
	s.mu.Lock()
	woken := s.woken
	s.mu.Unlock()
	return min(s.host.seams.Steady().Sub(woken), s.unconfirmed())
}

// unconfirmed is the time since the newest confirmation.
func (s *suspension) unconfirmed() time.Duration {
	return s.host.seams.Steady().Sub(s.host.store.Confirmed())
}

// ask has the log asked by a sync that begins from now on, unless that is under way.
func (s *suspension) ask() {
	s.mu.Lock()
	asking := s.asking
	s.asking = true
	s.mu.Unlock()
	if !asking {
		s.host.afterDurable.Do(s.host.store.Seen(0), s.answered)
	}
}

// answered ends the question. It resumes a suspended host if the answer is fresh.
func (s *suspension) answered(err error) {
	s.mu.Lock()
	s.asking = false
	s.mu.Unlock()
	switch {
	case err != nil || !s.off.Load(): // a store that has failed ends the host
	case s.unconfirmed() >= suspendAfter:
		s.ask()
	default:
		s.resume()
	}
}

// suspend cuts off the works, and holds back what would begin.
func (s *suspension) suspend() {
	s.mu.Lock()
	s.off.Store(true)
	works := make([]*Routine, 0, len(s.works))
	for r := range s.works {
		works = append(works, r)
	}
	slices.SortFunc(works, func(a, b *Routine) int { return cmp.Compare(s.works[a], s.works[b]) }) // a simulation repeats the order
	s.mu.Unlock()
	s.host.options.Logger.Warn("host suspends: the log does not answer, so another process may own the store", "works", len(works))
	for _, r := range works {
		r.Cancel(ErrSuspended)
	}
	s.ask()
}

// resume lets go what was held back.
func (s *suspension) resume() {
	s.mu.Lock()
	s.off.Store(false)
	held, resumed, then := s.held, s.resumed, s.then
	s.held, s.resumed, s.then, s.last = nil, nil, nil, s.host.seams.Clock.Now()
	s.mu.Unlock()
	s.host.options.Logger.Info("host goes on: the log answers, and the store is its own still")
	for _, r := range held {
		s.host.crew.Add(r)
	}
	if resumed != nil {
		close(resumed)
	}
	for _, step := range then {
		step()
	}
	s.begin()
	s.host.seams.Clock.AfterFunc(confirmEvery, s.look)
}

// holds reports whether a work that would begin is held back until the host resumes, or given up if the host ends. Otherwise the work counts as one that a
// suspension cuts off, unless its class prefers overlap.
func (s *suspension) holds(r *startedRoutine) bool {
	if r.state.act.hosted.options.OverlapWhileUnconfirmed {
		return false
	}
	s.mu.Lock()
	off, closed := s.off.Load(), s.closed
	switch {
	case !off:
		s.began++
		s.works[(*Routine)(r)] = s.began
	case !closed:
		s.held = append(s.held, r)
	}
	s.mu.Unlock()
	if off && closed {
		(*Routine)(r).over()
	}
	return off
}

// returned takes a work that has ended off those that a suspension cuts off. If one has cut it off, the instance is reset, so
// that the next event of the object constructs another, as after a restart. A job type runs its work again instead.
func (s *suspension) returned(r *Routine) {
	s.mu.Lock()
	delete(s.works, r)
	s.mu.Unlock()
	if !r.once || !r.Suspended() {
		return
	}
	a := r.state.act
	reset := func(t *turn) error {
		if t.act.state == r.state {
			t.act.reset(ErrSuspended)
		}
		return nil
	}
	if err := a.hosted.deliver(context.Background(), &Request{id: a.object.ID, exempt: true, op: bare(reset)}); err != nil {
		r.state.Log().Debug("object not reset after a suspension", "error", err)
	}
}

// await returns when the host is not suspended. It is for alarms that would begin, and for messages that are announced as they are.
func (s *suspension) await() {
	for s != nil && s.off.Load() {
		s.mu.Lock()
		if s.resumed == nil {
			s.resumed = make(chan struct{})
		}
		resumed, over := s.resumed, !s.off.Load() || s.closed
		s.mu.Unlock()
		if over || s.host.seams.Executor.Wait(s.host.lifecycle.ctx, resumed) != nil {
			return
		}
	}
}

// after reports whether the host is suspended, and has resume call step then, which must neither wait nor run user code. A host
// that ends does not call it.
func (s *suspension) after(step func()) bool {
	if s == nil || !s.off.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	off := s.off.Load()
	if off && !s.closed {
		s.then = append(s.then, step)
	}
	return off
}

// deferred reports whether a message must not begin, because the host is suspended. It stays stored as it was. Those behind it
// wait too, in their order, until the host goes on; back has one with a time wait. The caller owns the turn.
func (m *message) deferred() bool {
	s := m.host.suspension
	if s == nil || !s.off.Load() {
		return false
	}
	m.outcome, m.waits = kept, true
	x, to := &m.host.mail, m.Receiver()
	if m.due != 0 || !x.boxes.Suspend(&m.Message, ErrSuspended) {
		return true
	}
	if !s.after(func() { x.resume(to) }) { // the host has gone on meanwhile
		x.resume(to)
	}
	return true
}

// close gives up the works that are held. They never begin in this process, and the next one recovers them. Shutdown calls
// it, and the end of the host after an error of the store.
func (s *suspension) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	held, resumed := s.held, s.resumed
	s.closed, s.held, s.resumed, s.then = true, nil, nil, nil
	s.mu.Unlock()
	for _, r := range held {
		(*Routine)(r).over()
	}
	if resumed != nil {
		close(resumed)
	}
}

// stale reports whether a reply that does not wait for the log could be older than suspendAfter. On one machine it never is.
func (s *suspension) stale() bool { return s != nil && s.unconfirmed() >= suspendAfter }

// Suspended reports whether r was cut off because the replicated log did not answer (ErrSuspended). Its function may still run.
func (r *Routine) Suspended() bool { return errors.Is(r.endCause(), ErrSuspended) }

// Suspended reports whether the host is suspended, so that no work of the object begins: its replicated log has not answered for two
// seconds. It is false for a class with ClassOptions.OverlapWhileUnconfirmed, and on one machine. Any goroutine may call it.
func (d *Driver) Suspended() bool {
	s := d.state.act.host.suspension
	return s != nil && s.off.Load() && !d.state.act.hosted.options.OverlapWhileUnconfirmed
}

// SuspendedUntil returns when the newest suspension of the host ended, and the present time while it lasts; zero: there was none. Work that began before then may have
// been cut off by it.
func (d *Driver) SuspendedUntil() time.Time {
	s := d.state.act.host.suspension
	if s == nil {
		return time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off.Load() {
		return s.host.seams.Clock.Now()
	}
	return s.last
}

// RecoveryHold returns how long work that an earlier process has left open must still wait for its recovery, because that process
// may run it: over a log whose owner has not closed it, three seconds after the opening. It is zero on one machine.
func (d *Driver) RecoveryHold() time.Duration { return d.state.act.host.suspension.recoveryHold() }

// recoveryHold is RecoveryHold; s is nil on one machine.
func (s *suspension) recoveryHold() time.Duration {
	if s == nil || s.opens.IsZero() {
		return 0
	}
	return max(0, s.opens.Sub(s.host.seams.Steady()))
}

// OwnerLost reports whether the opening with the given epoch ended because another node, this one, has taken the store over. The
// work that it cut off is not to blame, and counts it apart from crashes (A8, R4).
func (d *Driver) OwnerLost(epoch uint64) bool {
	store := d.state.act.host.store
	return store.OwnerLost() && epoch == store.Previous().Epoch
}

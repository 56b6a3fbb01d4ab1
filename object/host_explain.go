package object

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object/internal/crew"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// Explanation is what a host knows of one object at one moment that is in no row: why a call
// of it waits, or why its alarm does not fire. Inspect has what is stored. Times are by the
// wall clock of the host. Fields may be added to it.
type Explanation struct {
	ID storage.ID `json:"id"`
	At time.Time  `json:"at"` // of the look

	// Failed is the error of the store that has ended the host; empty if it lives or was
	// shut down. Closing says that the host takes no calls any more. NoSpace says why turns
	// that write are refused; empty if they are not, as far as the store knows.
	Failed  string `json:"failed,omitempty"`
	Closing bool   `json:"closing,omitempty"`
	NoSpace string `json:"noSpace,omitempty"`
	// RecoveryHold is how long work that an earlier process has left open still waits before it
	// is recovered, because that process may run it (see Driver.RecoveryHold). It is zero on one machine.
	RecoveryHold time.Duration `json:"recoveryHold,omitempty"`

	// Registered says that the class was given to Open. If it was not, the fields above are
	// all that is known. Live says that the object is in memory.
	Registered bool `json:"registered"`
	Live       bool `json:"live,omitempty"`

	// Turn is the turn that holds the object; nil if none does.
	Turn *TurnState `json:"turn,omitempty"`
	// Lent are the turns that Release or Await has lent out, the oldest first: up to
	// MaxExplained of LentTurns.
	Lent      []TurnState `json:"lent,omitempty"`
	LentTurns int         `json:"lentTurns,omitempty"`
	Mailbox   Mailbox     `json:"mailbox"`

	// NotDurable says that the memory of a live object rests on commits that are applied and
	// not yet known to be durable, so replies wait. Syncing is when the sync of the log that is
	// under way began; zero if none is. A Syncing long ago tells of a disk that does not answer.
	NotDurable bool      `json:"notDurable,omitempty"`
	Syncing    time.Time `json:"syncing,omitzero"`

	// Constructor is the last failure of the object's constructor; nil if it did not fail,
	// or has succeeded since.
	Constructor *ConstructorFailure `json:"constructor,omitempty"`
	// Works are the names of the routines of the object that run, sorted: up to
	// MaxExplained. Held says which of its work waits for a trial, because it was cut off
	// by crashes in a row.
	Works []string   `json:"works,omitempty"`
	Held  []HeldWork `json:"held,omitempty"`
	// Alarm is the place of the object's alarm on its way to the handler.
	Alarm AlarmPlace `json:"alarm"`
	// Deadlock is the newest call of the object's turns that was refused with ErrDeadlock;
	// nil if none was among the last 1,000 of the host.
	Deadlock *RefusedCall `json:"deadlock,omitempty"`
}

// MaxExplained bounds each list of an Explanation.
const MaxExplained = 100

// TurnState is a turn that is under way.
type TurnState struct {
	// Method is the method that runs, or "alarm", "work" (a Do of a routine) or "runtime".
	Method string `json:"method"`
	// Number tells the turns of one activation apart: two looks with the same number have
	// seen the same turn. It is zero for a turn that is lent out.
	Number uint64 `json:"number,omitempty"`
	// Since is when a lent turn was lent out. For a turn that holds its object it is the
	// time of the first look of the watch that has seen it (see ClassOptions.HoldLimit), and
	// zero if none has. No turn reads a clock, so it may have begun a quarter of the limit
	// before, and a turn without a Since has begun after the last look. A class without a
	// limit has no Since.
	Since time.Time `json:"since,omitzero"`
	// Caller is the object that waits for the turn; zero if the call came from outside, or
	// if it is no call.
	Caller storage.ID `json:"caller,omitzero"`
	// WaitsFor are the objects for whose turns it waits, sorted: up to MaxExplained. Its own
	// object is among them if it repeats a call under an idempotency key, and waits for the first.
	WaitsFor []storage.ID `json:"waitsFor,omitempty"`
	// Committing says that the store is applying a commit of the turn.
	Committing bool `json:"committing,omitempty"`
}

// Mailbox is how many wait for an object.
type Mailbox struct {
	// Calls wait for their turns, and Others too, which no limit refuses: alarms, messages,
	// turns of routines and of the runtime, and lent turns that take the object back.
	Calls  int `json:"calls,omitempty"`
	Others int `json:"others,omitempty"`
	// Oldest is since when the first call has waited; zero without a call.
	Oldest time.Time `json:"oldest,omitzero"`
	// Limit is ClassOptions.MailboxLimit. Refusing says that a call that comes now would be
	// refused with ErrOverloaded.
	Limit    int  `json:"limit,omitempty"`
	Refusing bool `json:"refusing,omitempty"`
}

// ConstructorFailure is why calls of an object are refused with ErrConstructor.
type ConstructorFailure struct {
	Times int       `json:"times"` // failures in a row
	Error string    `json:"error"` // of the last one
	Next  time.Time `json:"next"`  // the first call at or after this time constructs again
}

// HeldWork is an alarm, a message or an execution that may have killed its process, see A8.
type HeldWork struct {
	// Execution is the key of the execution; empty for an alarm or a message.
	Execution string `json:"execution,omitempty"`
	// Charges is how many crashes it is charged with.
	Charges int `json:"charges,omitempty"`
	// OnTrial says that it runs now, and the others are held back until then.
	OnTrial bool `json:"onTrial,omitempty"`
	// Before is how many trials come before its own, as far as they are planned. NotBefore
	// is a time before which its own does not begin.
	Before    int       `json:"before,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// AlarmPlace is the place of an object's alarm on its way: in the scheduler, or in the line
// for a permit (ClassOptions.WorkLimit), where the scheduler has let go of it. An alarm that
// is held back for crashes is in Explanation.Held.
type AlarmPlace struct {
	alarm.Place
	// Permit is its place in that line, 1 for the next one, counted up to alarm.MaxBefore.
	// Zero: it is not in line.
	Permit int `json:"permit,omitempty"`
}

// RefusedCall is a call that would have closed a circle of waiting turns.
type RefusedCall struct {
	At    time.Time  `json:"at"`
	To    storage.ID `json:"to"`    // the object that was called
	Error string     `json:"error"` // with the circle
}

// Explain tells what the host knows of an object at this moment. It runs no turn, reads no row
// and does not wait for the disk, so it answers also for an object that is stuck, and on a host
// that has ended. It takes the locks of the object and of the graph of waiting turns for an
// instant. It returns ErrBadName for a name that no object can have, and the cause of ctx.
func (h *Host) Explain(ctx context.Context, id storage.ID) (Explanation, error) {
	if err := cmp.Or(validID(id), seam.Cause(ctx)); err != nil {
		return Explanation{}, lookError(id, err)
	}
	e := Explanation{ID: id, At: h.seams.Clock.Now()}
	h.explainHost(&e)
	c := h.hosted[id.Class]
	if c == nil {
		return e, nil
	}
	e.Registered = true
	e.Mailbox.Limit = c.options.MailboxLimit
	if last, ok := c.failing.of(id.Name); ok {
		e.Constructor = &ConstructorFailure{last.times, last.cause.Error(), last.until}
	}
	h.explainAlarm(c, &e)
	e.Held = h.flightLog.suspects.of(id)
	h.explainTurns(h.activationOf(id), &e)
	return e, nil
}

// explainHost tells of the host and of its store.
func (h *Host) explainHost(e *Explanation) {
	if err := cmp.Or(h.Err(), h.store.Err()); err != nil && errors.Is(err, ErrStorage) && !errors.Is(err, storage.ErrClosed) {
		e.Failed = err.Error()
	}
	e.Closing = h.lifecycle.closing.Load()
	if err := h.store.LookAtSpace(); err != nil {
		e.NoSpace = err.Error()
	}
	e.Syncing = h.store.Syncing()
	e.RecoveryHold = h.suspension.recoveryHold()
}

// explainAlarm tells where the alarm is.
func (h *Host) explainAlarm(c *hosted, e *Explanation) {
	e.Alarm.Place = h.alarms.Explain(h.store.ShardOf(e.ID), e.ID.Class, e.ID.Name)
	if c.permits != nil {
		e.Alarm.Permit = c.permits.place(e.ID.Name, alarm.MaxBefore)
	}
}

// explainTurns tells of the turns of an activation, which may be nil, of its mailbox and of
// its routines. It holds the mutexes of the graph and of the activation together, so that the
// turn and the calls that wait for it are of one moment.
func (h *Host) explainTurns(a *activation, e *Explanation) {
	w := &h.waits
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.newest(e.ID); r != nil {
		e.Deadlock = &RefusedCall{r.at, r.to, r.text}
	}
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone {
		return
	}
	now := h.seams.Steady()
	wall := func(steady time.Time) time.Time { return e.At.Add(steady.Sub(now)) }
	e.Live = true
	e.NotDurable = !h.store.Durable(storage.Ticket(a.last.Load()))
	if a.begun {
		e.Turn = &TurnState{Method: a.method(), Number: uint64(a.turns), Committing: a.writing}
		if since, seen := a.heldSince(); seen {
			e.Turn.Since = wall(since)
		}
		w.link((*turn).holds, a, e.Turn)
	}
	lent := h.lent.of(a)
	e.LentTurns = len(lent)
	for _, l := range lent[:min(len(lent), MaxExplained)] {
		t := TurnState{Method: l.method, Since: wall(l.since)}
		w.link(func(t *turn) bool { return t == l.turn }, a, &t)
		e.Lent = append(e.Lent, t)
	}
	a.explainMailbox(now, wall, &e.Mailbox)
	e.Works = h.worksOf(a)
}

// link fills in what a turn of a waits for, and which object waits for it. is reports whether
// it is the turn that is meant. The caller holds mu.
func (w *waits) link(is func(*turn) bool, a *activation, s *TurnState) {
	for _, c := range w.callers {
		for _, on := range c.on {
			if c.act == a && is(c.turn) {
				s.WaitsFor = append(s.WaitsFor, on.id)
			}
			if is(on.turn) && on.of(a) {
				s.Caller = c.act.object.ID
			}
		}
	}
	slices.SortFunc(s.WaitsFor, func(x, y storage.ID) int {
		return cmp.Or(cmp.Compare(x.Class, y.Class), cmp.Compare(x.Name, y.Name))
	})
	s.WaitsFor = slices.Compact(s.WaitsFor)
	s.WaitsFor = s.WaitsFor[:min(len(s.WaitsFor), MaxExplained)]
}

// explainMailbox counts the requests that wait. The caller holds mu.
func (a *activation) explainMailbox(now time.Time, wall func(time.Time) time.Time, m *Mailbox) {
	full, age := a.overload(now)
	m.Refusing = full || age > 0
	for r := a.head; r != nil; r = r.next {
		switch {
		case r.progress.Load() == abandoned:
		case r.queuedAt.IsZero(): // it is exempt from the limits
			m.Others++
		default:
			if m.Calls++; m.Oldest.IsZero() {
				m.Oldest = wall(r.queuedAt)
			}
		}
	}
}

// worksOf returns the names of the routines of an activation that run.
func (h *Host) worksOf(a *activation) (names []string) {
	h.crew.Running(func(r crew.Runner) {
		if w, ok := r.(*startedRoutine); ok && w.state.act == a && len(names) < MaxExplained {
			names = append(names, w.name)
		}
	})
	slices.Sort(names)
	return names
}

// of returns the work of an object that is on trial or held back: first that on trial, then in
// the order of the trials.
func (s *suspects) of(id storage.ID) (all []HeldWork) {
	if !s.some.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.trying {
		if x.id == id {
			all = append(all, HeldWork{Execution: strings.TrimSpace(x.key), Charges: s.found.charges[x], OnTrial: true})
		}
	}
	slices.SortFunc(all, func(x, y HeldWork) int { return cmp.Compare(x.Execution, y.Execution) })
	wait := func(x *suspect, before int, at time.Time) {
		if x.id == id && s.held[x.subject] == x && len(all) < MaxExplained {
			all = append(all, HeldWork{strings.TrimSpace(x.key), s.found.charges[x.subject], false, before, at})
		}
	}
	for i, t := range s.queue {
		for _, x := range t.members {
			wait(x, i, later(s.gather, t.at))
		}
	}
	for _, x := range s.late { // in no trial yet: it gets one behind those that are planned
		at := s.gather
		if s.found.charges[x.subject] > 0 {
			at = later(at, s.control)
		}
		wait(x, len(s.queue), at)
	}
	return all[:min(len(all), MaxExplained)]
}

// later returns the later of two times.
func later(x, y time.Time) time.Time {
	if x.After(y) {
		return x
	}
	return y
}

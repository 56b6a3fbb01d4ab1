package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
)

// Policy is the part of a job type that the engine calls. All methods run in a turn of the
// object. They write to storage first and change memory after it: a turn that
// fails after it wrote resets the instance, and one that fails before must
// have changed nothing.
type Policy interface {
	// Due begins the executions that are due at now, with Engine.Begin. It is called at the end
	// of each turn, wake-up and end batch, unless the host is shutting down.
	Due(ctx context.Context, now time.Time) error
	// Next returns the earliest time at which Due has something to do, or zero
	// if that takes an event. It reads nothing, and depends only on stored values,
	// not on the present time.
	Next() time.Time
	// Ended stores the consequences of the end of x. It is called once for each
	// execution that ends, in its end batch, and x is no longer open. A run
	// that Waits (see Outcome) does so until out.Run.RetryAt, as Next
	// must say; then Due begins it again with that Run.
	Ended(ctx context.Context, x Execution, out Outcome) error
}

// Settler is a Policy that collects the changes of a turn in memory, and writes them
// once.
type Settler interface {
	// Settle writes the changes that the turn has collected. It is called at the end of
	// each turn, wake-up and end batch, also while the host shuts down, but not
	// in a turn that ends the object.
	Settle(ctx context.Context, now time.Time) error
}

// Idler is a Policy of objects that end by themselves when they have had nothing to do
// for some time.
type Idler interface {
	// IdleEnd returns when the object ends if nothing changes until then; zero: never.
	// It is asked while Next is zero and nothing is open. Due ends the object. It reads
	// nothing and depends only on stored values, not on the present time.
	IdleEnd() time.Time
}

// Engine is the executions of one object: it begins them, keeps their leases,
// ends them, and recovers those that were lost. It keeps the object's alarm and
// its open-execution mark; a job type must touch neither. All its methods are called
// in a turn of the object, so no field but ends needs a lock.
type Engine struct {
	st *object.State
	o  Options
	p  Policy

	open    map[Token]*execution
	checkAt time.Time // no open execution is to be looked at before it; zero if none is open
	mark    openMark
	purged  bool      // the object ends with this turn
	closing bool      // the host was shutting down or suspended when this turn began
	exact   bool      // LazyAlarm is off, because the job rests until a time
	at      time.Time // when this turn began

	ends endQueue // shared with the goroutines of the routines
}

// openMark tells which instance wrote the object's open-execution mark.
type openMark uint8

const (
	noMark  openMark = iota
	oldMark          // written by an earlier instance
	ownMark          // written by this one
)

// Attach returns the engine of the object of st. A constructor calls it when p
// has loaded its rows. It makes the check of a wake-up (R1 to R3) and sets the alarm that
// the check asks for. It begins no execution.
//
// The object's class must be defined with ClassOptions. With the options of other
// classes a wake-up that fails, or is cut off by crashes, a few times in a row
// becomes a dead letter, and nothing runs until the object is called.
//
// The alarm of the object belongs to the engine from then on: Attach returns
// object.ErrAlarmOwned if another has it, and State.SetAlarm returns that to all others.
func Attach(ctx context.Context, st *object.State, o Options, p Policy) (*Engine, error) {
	if err := st.Driver().OwnAlarm(ctx, object.OwnedByJob); err != nil {
		return nil, err
	}
	e := newEngine(st, o, p)
	return e, e.attach(ctx)
}

// Reload attaches the engine anew, in a constructor that has mended the rows since Attach.
func (e *Engine) Reload(ctx context.Context) error {
	*e = *newEngine(e.st, e.o, e.p)
	return e.attach(ctx)
}

// attach reads the open executions and makes the check of a wake-up.
func (e *Engine) attach(ctx context.Context) error {
	if err := e.load(ctx); err != nil {
		return err
	}
	return e.wake(ctx)
}

// newEngine returns an engine that knows of no execution.
func newEngine(st *object.State, o Options, p Policy) *Engine {
	e := &Engine{st: st, o: o.WithDefaults(), p: p, open: make(map[Token]*execution)}
	e.at = e.present()
	return e
}

// load reads the open executions, and does nothing about them yet.
func (e *Engine) load(ctx context.Context) error {
	if err := e.read(ctx); err != nil {
		return err
	}
	for _, x := range e.open {
		e.judgeLoss(x)
		e.note(x)
	}
	return nil
}

// Turn is a turn of the object that changes something. It runs fn, begins the executions
// that are due, and stores the open mark and the alarm. The alarm is the earliest time at
// which an open execution or the job type has something to do.
//
// On a disk that is nearly full it returns object.ErrNoSpace and does not run fn, so that
// the works of the object are not cut off by a turn that cannot be stored (O17).
func (e *Engine) Turn(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := e.st.Driver().Space(); err != nil {
		return err
	}
	e.at, e.closing = e.present(), e.st.Closing() || e.st.Driver().Suspended()
	if err := fn(ctx); err != nil {
		return err
	}
	if e.purged {
		return nil
	}
	if !e.closing { // else due executions stay due until the next open, or until the log answers
		if err := e.p.Due(ctx, e.Now()); err != nil {
			return err
		}
	}
	if e.purged {
		return nil
	}
	if p, ok := e.p.(Settler); ok {
		if err := p.Settle(ctx, e.Now()); err != nil {
			return err
		}
	}
	return e.settle(ctx)
}

// Spec describes an execution to begin.
type Spec struct {
	Subject string   // the thing that is executed; see Execution
	Run     jobs.Run // its progress so far
	Key     string   // see Execution; empty means the object's id and Run.Number
	// Work is run beside the turns. Nil makes an execution that a caller
	// outside holds: it lives as long as its lease, also if the host
	// dies, and ends by Finish.
	Work Work
	// Hook says that a hook of the user's is called, which is no run: a call is made
	// ten times in all, that of a hook of a Retention five times, with waits of 1 s, 2 s and
	// so on, and its starts and successes emit no events.
	Hook bool
	// Size is about how many bytes the end of the execution writes if it fails, so
	// that not too many failures are stored in one batch.
	Size    int
	Timeout time.Duration // in place of Options.Timeout, if not zero
	Lease   time.Duration // in place of Options.Lease, if not zero
}

// Begin opens an execution, in the batch of the turn. Its work starts when the
// batch is durable. It needs a Turn; Policy.Due is the place to call it. In a
// turn of a host that shuts down or is suspended it returns ErrClosing and changes nothing, and over a dormant
// store object.ErrDormant.
func (e *Engine) Begin(ctx context.Context, s Spec) (Execution, error) {
	if e.closing {
		return Execution{}, ErrClosing
	}
	if err := e.st.Driver().Awake(); err != nil {
		return Execution{}, err
	}
	x := e.newExecution(&s)
	if x.alive() && s.Run.CutEpoch != 0 {
		x.routine.hold(e.st.Driver().Suspicion(x.record()).Held(s.Run.Cuts, s.Run.CutEpoch))
	}
	if err := e.save(ctx, x); err != nil {
		return Execution{}, err
	}
	if err := e.tell(ctx, jobs.EventStart, x.Execution, jobs.Event{}); err != nil {
		return Execution{}, err
	}
	e.open[x.Token] = x
	if !x.alive() {
		e.judgeLoss(x)
		e.note(x)
		return *x.Execution, nil
	}
	e.note(x)
	if x.Held {
		return *x.Execution, e.st.Driver().StartSuspect(ctx, &x.routine.Routine, x.record(), "execution", x.routine.run)
	}
	return *x.Execution, e.st.Driver().Start(ctx, &x.routine.Routine, "execution", x.routine.run)
}

// newExecution is an execution that begins now, as s says.
func (e *Engine) newExecution(s *Spec) *execution {
	now := e.Now()
	given := Execution{
		Token: e.newToken(), Subject: s.Subject, Key: s.Key, Run: begunRun(s.Run, now),
		Epoch: e.st.Driver().Epoch(), Began: now, Lease: now.Add(cmp.Or(s.Lease, e.o.Lease)), Outside: s.Work == nil, Hook: s.Hook,
	}
	if given.Key == "" {
		given.Key = fmt.Sprintf("%s/%d", e.st.ID(), given.Run.Number)
	}
	if s.Work == nil {
		held := given
		return &execution{Execution: &held}
	}
	r := e.newRoutine(&given, s)
	return &execution{Execution: &r.given, routine: r}
}

// Count returns how many executions are open, lost ones included.
func (e *Engine) Count() int { return len(e.open) }

// Executions returns the open executions in the order of their begin.
func (e *Engine) Executions() []Execution {
	all := e.sorted()
	out := make([]Execution, len(all))
	for i, x := range all {
		out[i] = *x.Execution
	}
	return out
}

// Lookup returns the open execution with the token.
func (e *Engine) Lookup(t Token) (Execution, bool) {
	x, ok := e.open[t]
	if !ok {
		return Execution{}, false
	}
	return *x.Execution, true
}

// Cancel ends the context of a routine with cause, and reports whether there is such a
// routine here. If the work then returns an error its outcome is Cancelled; if it
// succeeds all the same, the outcome is Done.
func (e *Engine) Cancel(t Token, cause error) bool {
	x, ok := e.open[t]
	if !ok || !x.alive() {
		return false
	}
	x.routine.cancelled.Store(true)
	x.routine.Cancel(cause)
	return true
}

// Discard removes an open execution and cancels its work; Ended is not called. It
// returns ErrStaleExecution if the execution is not open.
func (e *Engine) Discard(ctx context.Context, t Token) error {
	x, ok := e.open[t]
	if !ok {
		return e.Stale(t)
	}
	if err := e.remove(ctx, x); err != nil {
		return err
	}
	if x.alive() {
		x.routine.Cancel(jobs.ErrStaleExecution)
	}
	return nil
}

// Renew extends the lease of an execution that a caller holds until lease from now, or
// until Options.Lease from now if lease is zero, and returns its new end. It returns
// ErrStaleExecution if the execution is not open.
func (e *Engine) Renew(ctx context.Context, t Token, lease time.Duration) (time.Time, error) {
	x, ok := e.open[t]
	if !ok {
		return time.Time{}, e.Stale(t)
	}
	if lease == 0 {
		lease = e.o.Lease
	}
	x.extend(e.Now().Add(lease))
	if !x.alive() {
		e.judgeLoss(x)
		e.note(x)
	}
	return x.Lease, e.save(ctx, x)
}

// Finish ends an execution that a caller holds, in the caller's turn: with res, or
// with err if that is not nil. It returns ErrStaleExecution if it is not open.
func (e *Engine) Finish(ctx context.Context, t Token, res Result, err error) error {
	x, ok := e.open[t]
	if !ok {
		return e.Stale(t)
	}
	return e.conclude(ctx, x, end{result: res, err: err})
}

// Purge ends the object with this turn: all its keys, its alarm and its marks.
func (e *Engine) Purge(ctx context.Context) error {
	if err := e.st.Driver().Purge(ctx); err != nil {
		return err
	}
	e.purged = true
	return nil
}

// Stale counts a try to end or extend an execution that is not open, or not the
// caller's, and returns the ErrStaleExecution that the caller gets. It changes
// nothing. A job type calls it where it refuses a token itself.
func (e *Engine) Stale(t Token) error {
	e.st.Driver().CountExecution("stale")
	return fmt.Errorf("%s: %w: %s", e.st.ID(), jobs.ErrStaleExecution, t)
}

// conclude ends x. It stores the result, decides the outcome, and emits the events. See
// the story of an end above type endQueue.
func (e *Engine) conclude(ctx context.Context, x *execution, how end) error {
	if how.err == nil && how.result.Store != nil {
		switch err := e.st.Driver().AllOrNothing(ctx, how.result.Store); { // a refused part must not leave the others behind
		case tooLarge(err):
			how = end{err: err}
		case err != nil:
			return err
		}
	}
	o := e.o
	if x.Hook {
		o.Retry, o.endless = retryOf(x.Subject), false
	}
	out := o.decide(x.Run, how, e.Now(), e.st.Driver().Seams().Rand)
	if err := e.remove(ctx, x); err != nil {
		return err
	}
	if err := e.tellEnd(ctx, x.Execution, out); err != nil {
		return err
	}
	if err := e.log(ctx, x.Execution, out); err != nil {
		return err
	}
	e.st.Driver().CountExecution(string(out.Kind))
	return e.p.Ended(ctx, *x.Execution, out)
}

// tooLarge reports whether the store refused a result for its size. That is a mistake of
// the run, which fails; every other error of the store fails the turn.
func tooLarge(err error) bool {
	return errors.Is(err, object.ErrValueTooLarge) || errors.Is(err, object.ErrBatchTooLarge) || errors.Is(err, object.ErrKeyTooLarge)
}

// Now is the time at which the present Turn began, as it is stored: in UTC and
// without a monotonic part. All that a turn does happens at this time.
func (e *Engine) Now() time.Time { return e.at }

// present is the time as it is stored.
func (e *Engine) present() time.Time { return e.st.Now().Round(0).UTC() }

// judgeLoss asks recovery.Check when an execution that has no routine here counts as lost, and
// what follows. It keeps the answer in x.action, which attend carries out.
func (e *Engine) judgeLoss(x *execution) {
	s := recovery.Snapshot{
		Now: e.Now(), Epoch: e.st.Driver().Epoch(), Began: e.st.Driver().OpenedAt().Round(0).UTC(),
		Open: true, OpenEpoch: x.Epoch, Since: x.Began, Losses: x.Run.Losses,
		Charges: e.st.Driver().Suspicion(x.record()).Charges, Free: e.st.Driver().EndedInOrder(x.Epoch),
		OwnerLost: e.st.Driver().OwnerLost(x.Epoch), OwnersLost: x.Run.OwnersLost, Hold: e.st.Driver().RecoveryHold(),
	}
	if x.Outside {
		s.Until = x.Lease
	}
	if x.Run.CutEpoch == 0 { // it has made progress, or a failure, after the crashes that are charged to it
		s.Charges = 0
	}
	x.action = recovery.Check(s, e.o.Limits)
	if x.action.Cause == recovery.CauseStale && e.cutsAreFree(x) {
		x.action.Verb = recovery.Rerun
	}
}

// cutsAreFree reports whether it costs x nothing that its instance was reset, or its end not
// stored: by the definition of the job, or because meanwhile the disk was nearly full, the host was suspended, or too many
// messages waited for those of the end.
func (e *Engine) cutsAreFree(x *execution) bool {
	d := e.st.Driver()
	return e.o.resetsAreFree || !x.Began.After(d.SpaceRefusedAt()) || !x.Began.After(d.SuspendedUntil()) || !x.Began.After(d.OutboxFullAt())
}

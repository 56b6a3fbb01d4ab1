package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Type is what a job type with at most one execution at a time tells its Life.
// All methods run in a turn, and write before they change memory (see Policy).
type Type interface {
	// Prepare returns the work of a run that begins now. It runs in the begin
	// batch, for each execution of the run; Run.Attempt is zero for the first.
	// A nil Work without an error means that there is no such run after all;
	// Next must have moved on then. If it returns an error it must have
	// written nothing; the execution begins and fails with the error.
	Prepare(ctx context.Context, run Run) (Work, error)
	// Next returns when the next new run is due, or zero if that takes an
	// event. See Policy.Next.
	Next() time.Time
	// Ended is told of the end of a run, in the end batch: of outcomes Done,
	// Quit with Stop, GaveUp (whatever LifeOptions.Exhausted says, but for
	// Purge) and Cancelled. It moves the schedule and drops what was used up.
	Ended(ctx context.Context, x Execution, out Outcome) error
}

// Leaver is a Type of jobs that end by themselves: with the event that Terminate
// emits, whose reason is IdleReason. A job that is paused, stopped or failed never
// does.
type Leaver interface {
	// IdleEnd returns when the job ends that was changed last at the given time, which
	// is its Meta.UpdatedAt; zero: never. It is asked while the job is running, no run
	// is open or to come, and no call of OnExhausted is owed. See Idler.IdleEnd.
	IdleEnd(updated time.Time) time.Time
	// Leaves is asked in a turn at IdleEnd or later whether the job ends with it. If
	// not, IdleEnd must have moved on.
	Leaves(ctx context.Context) (bool, error)
}

// IdleReason is the Event.Reason of the end of a job that ended by itself, since it
// was idle for long.
const IdleReason = "idle"

// Exhausted says what becomes of a job whose run was given up (J9). A job that
// was lost in a crash too often fails under each policy (R4).
type Exhausted uint8

const (
	Keep  Exhausted = iota // the schedule goes on; consecutive failures are counted
	Fail                   // the job fails; its state is kept
	Purge                  // the job is gone
)

// Valid reports whether e is one of the policies.
func (e Exhausted) Valid() bool { return e <= Purge }

// LifeOptions are the settings of a Life.
type LifeOptions struct {
	Options
	Type      string // for Meta
	Version   string // of the definition, for Meta
	Exhausted Exhausted
	// Drops says that the type discards stored values with a run that is given up.
	// If the reason is that they cannot be read, the job fails instead, as it does
	// in place of Purge.
	Drops bool
	// OnExhausted is called for each run that was given up, beside the turns, after
	// the batch that gave it up is durable. It is called at least once, and again
	// after an error, with growing waits, until ten calls have failed; after a
	// crash as an execution is (R4). Calls for one job are made one at a time, in
	// order, and no further run begins while 16 are owed. A job that Purge ends is
	// failed until then. Nil: there is no hook.
	OnExhausted func(ctx context.Context, x *Exhaustion) error
}

// Life is the life of one job that has at most one execution open: its metadata,
// its status, and when its runs begin and end. It belongs to one activation, and
// its methods need the context of a turn.
type Life struct {
	e    *Engine
	st   *object.State
	o    LifeOptions
	t    Type
	meta Meta // as stored

	hooks   []owedHook // calls of OnExhausted that are owed, in order; see Meta.Hooks
	calling Token      // the execution of the first of them, if it is under way
}

// NewLife reads the job's metadata and makes the check of a wake-up. A
// constructor calls it when t has loaded what it has stored.
func NewLife(ctx context.Context, st *object.State, o LifeOptions, t Type) (*Life, error) {
	l := &Life{st: st, o: o, t: t}
	l.o.Options = o.Options.WithDefaults()
	if _, err := st.Storage().GetInto(ctx, MetaKey, &l.meta); err != nil {
		return nil, err
	}
	var err error
	l.e, err = newEngine(ctx, st, l.o.Options, l)
	if err != nil {
		return nil, err
	}
	if err := l.loadHooks(ctx); err != nil {
		return nil, err
	}
	l.meta = l.meta.normal(l.Open())
	return l, l.e.wake(ctx)
}

// Exists reports whether there is such a job.
func (l *Life) Exists() bool { return l.meta.Status != None }

// Meta returns the metadata as it is stored.
func (l *Life) Meta() Meta { return l.meta }

// Open returns how many executions of runs are open, which is 0 or 1.
func (l *Life) Open() int {
	if l.calling != "" {
		return l.e.Open() - 1
	}
	return l.e.Open()
}

// Engine is the engine of the job's executions.
func (l *Life) Engine() *Engine { return l.e }

// Now is the time of the present Turn; see Engine.Now.
func (l *Life) Now() time.Time { return l.e.Now() }

// Turn is a turn of the job that changes something; see Engine.Turn.
func (l *Life) Turn(ctx context.Context, fn func(ctx context.Context) error) error {
	return l.e.Turn(ctx, fn)
}

// Alarm is a wake-up; see Engine.Alarm.
func (l *Life) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return l.e.Alarm(ctx, info)
}

// put stores m and makes it the job's metadata.
func (l *Life) put(ctx context.Context, m Meta) error {
	m.UpdatedAt = l.e.Now()
	m.Version = l.o.Version
	m.Attempt, m.RecoveryAttempts = m.Run.Attempt, m.Run.Recoveries
	m.Hooks = len(l.hooks)
	if err := l.st.Storage().Put(ctx, MetaKey, m); err != nil {
		return err
	}
	l.meta = m
	return nil
}

// Next is the earliest time at which a run, or a call of OnExhausted, begins; see
// Policy.
func (l *Life) Next() time.Time { return earliest(l.NextRun(), l.nextHook()) }

// NextRun is when the next run begins; zero if none is due.
func (l *Life) NextRun() time.Time {
	switch m := &l.meta; {
	case m.Status != Running, len(l.hooks) >= maxHooks && l.o.OnExhausted != nil:
		return time.Time{}
	case !m.Run.RetryAt.IsZero():
		return m.Run.RetryAt
	case !m.NextAt.IsZero():
		return m.NextAt
	}
	return l.t.Next()
}

// Waiting reports whether a run is due and waits for a permit of the class.
func (l *Life) Waiting() bool {
	at := l.NextRun()
	return !at.IsZero() && !at.After(l.st.Now()) && l.st.AwaitsPermit()
}

// IdleEnd is when the job ends by itself if nothing happens; zero: it has something to
// do, or is not running, or its type keeps it. See Leaver.
func (l *Life) IdleEnd() time.Time {
	t, ok := l.t.(Leaver)
	switch {
	case !ok, l.meta.Status != Running, !l.NextRun().IsZero():
		return time.Time{}
	case len(l.hooks) > 0:
		return time.Time{}
	}
	at := t.IdleEnd(l.meta.UpdatedAt)
	if at.IsZero() {
		return at
	}
	return storable(at)
}

// leave ends a job that has been idle for long enough.
func (l *Life) leave(ctx context.Context, now time.Time) error {
	at := l.IdleEnd()
	if at.IsZero() || at.After(now) {
		return nil
	}
	leaves, err := l.t.(Leaver).Leaves(ctx)
	switch {
	case err != nil:
		return err
	case leaves:
		return l.terminate(ctx, IdleReason)
	}
	if next := l.IdleEnd(); !next.IsZero() && !next.After(now) {
		return fmt.Errorf("jobs: %s: end of the idle job due at %s neither came nor moved", l.st.ID(), at)
	}
	return nil
}

// Due begins the run that is due, and the call of OnExhausted, or ends a job that was
// idle for long; see Policy.
func (l *Life) Due(ctx context.Context, now time.Time) error {
	if err := l.callHook(ctx, now); err != nil {
		return err
	}
	if err := l.beginDue(ctx, now); err != nil {
		return err
	}
	return l.leave(ctx, now)
}

// beginDue begins the run that is due.
func (l *Life) beginDue(ctx context.Context, now time.Time) error {
	for {
		at := l.NextRun()
		if at.IsZero() || at.After(now) {
			return nil
		}
		free, err := l.st.TakePermit(ctx, l.meta.Run.Recovering)
		if !free || err != nil { // the alarm, which is due, fires when the run may begin
			return err
		}
		begun, err := l.begin(ctx, at)
		if begun || err != nil {
			return err
		}
		if next := l.NextRun(); !next.IsZero() && !next.After(at) {
			return fmt.Errorf("jobs: %s: run due at %s was neither begun nor moved", l.st.ID(), at)
		}
	}
}

// begin opens an execution of the run that was due at the given time, unless the
// job type drops that run.
func (l *Life) begin(ctx context.Context, at time.Time) (bool, error) {
	run := l.meta.nextRun(at)
	do, err := l.t.Prepare(ctx, run)
	switch {
	case err != nil && notTheJobs(err):
		return false, err
	case err != nil:
		do = func(context.Context, Execution) (Result, error) { return Result{}, err }
	case do == nil:
		return false, nil
	}
	x, err := l.e.Begin(ctx, Spec{Run: run, Key: l.key(run), Work: do})
	if err != nil {
		return false, err
	}
	m := l.meta.begun(x)
	if run.Attempt == 0 {
		m.NextAt, m.NextCause = time.Time{}, ""
	}
	return true, l.put(ctx, m)
}

// notTheJobs tells errors of the runtime, which fail the turn and not the run.
func notTheJobs(err error) bool {
	for _, e := range []error{object.ErrStorage, object.ErrReset, object.ErrShutdown, object.ErrNoTurn, storage.ErrCorrupt} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// key is the outside idempotency key of a run (J8).
func (l *Life) key(run Run) string {
	return fmt.Sprintf("%s/%s/%d", l.st.ID(), l.meta.Life, run.Number)
}

// Ended is the end of an execution; see Policy. All ends go this way.
func (l *Life) Ended(ctx context.Context, x Execution, out Outcome) error {
	if x.Hook {
		return l.hookEnded(ctx, out)
	}
	if out.Kind == GaveUp && l.o.OnExhausted != nil {
		if err := l.owe(ctx, x, out); err != nil {
			return err
		}
	}
	m := l.meta.ended(x, out, l.e.Now())
	to, reason := l.after(out)
	if to == Terminated {
		return l.terminate(ctx, reason)
	}
	m, err := l.moved(m, to, reason)
	if err != nil {
		return err
	}
	m.Purging = to == Failed && l.purges(out)
	if err := l.put(ctx, m); err != nil {
		return err
	}
	if !out.Waits() {
		if err := l.t.Ended(ctx, x, out); err != nil {
			return err
		}
	}
	return l.tellMove(ctx, Executing, to, reason)
}

// after is the status that follows from an outcome.
func (l *Life) after(out Outcome) (to Status, reason string) {
	gaveUp := "given up: " + string(out.Reason)
	switch {
	case out.Kind == Quit && out.Result.End == Terminate:
		return Terminated, out.Result.Reason
	case out.Kind == Quit:
		return Stopped, out.Result.Reason
	case out.Reason == ReasonRecoveries, out.Kind == GaveUp && l.o.Exhausted == Fail:
		return Failed, gaveUp
	case (l.o.Drops || l.o.Exhausted == Purge) && l.unread(out):
		return Failed, gaveUp
	case l.purges(out) && len(l.hooks) > 0: // the hook is called first
		return Failed, gaveUp
	case l.purges(out):
		return Terminated, gaveUp
	case l.meta.Pausing:
		return Paused, ""
	}
	return Running, ""
}

// purges reports whether the job is gone after an outcome.
func (l *Life) purges(out Outcome) bool {
	return out.Kind == GaveUp && out.Reason != ReasonRecoveries && l.o.Exhausted == Purge && !l.unread(out)
}

// unread reports whether a run was given up because something stored of the job
// could not be read: then all of it is kept, for a definition that can (J15).
func (l *Life) unread(out Outcome) bool {
	var bad *DecodeError
	return out.Kind == GaveUp && errors.As(out.Err, &bad) && bad.ID == l.st.ID()
}

// moved returns m in another status, if the table has the move (J3).
func (l *Life) moved(m Meta, to Status, reason string) (Meta, error) {
	if err := l.mayMove(m.Status, to); err != nil {
		return m, err
	}
	m.Status, m.StopReason, m.Pausing, m.Purging = to, Shorten(reason), false, false
	return m, nil
}

// mayMove is nil if the table has the move, else a MoveError that names the job.
func (l *Life) mayMove(from, to Status) error {
	if from.CanMove(to) {
		return nil
	}
	return &MoveError{ID: l.st.ID(), From: from, To: to}
}

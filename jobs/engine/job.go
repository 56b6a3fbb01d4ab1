package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Type is the part of a job type that a Job calls.
// All methods run in a turn, and write before they change memory (see Policy).
type Type interface {
	// Prepare returns the work of a run that begins now. It runs in the begin
	// batch, for each execution of the run; Run.Attempt is zero for the first.
	// A nil Work without an error means that there is no such run after all;
	// Next must have moved on then. If it returns an error it must have
	// written nothing; the execution begins and fails with the error.
	Prepare(ctx context.Context, run jobs.Run) (Work, error)
	// Next returns when the next new run is due, or zero if that takes an
	// event. See Policy.Next.
	Next() time.Time
	// Ended is told of the end of a run, in the end batch: of outcomes Done,
	// Quit with each Wish but Terminate, GaveUp (with every JobOptions.Exhausted but
	// Purge) and Cancelled. It moves the schedule and deletes stored
	// values that the run has used up. It is not told of a run that makes its job
	// stuck, because that run goes on.
	Ended(ctx context.Context, x Execution, out Outcome) error
}

// IdlePurger is a Type of jobs that end by themselves: with the event that Terminate
// emits, with the reason IdleReason. A job that is paused, stopped or failed never
// does.
type IdlePurger interface {
	// IdleEnd returns when the job ends that was changed last at the given time, which
	// is its Meta.UpdatedAt; zero: never. It is asked while the job is running, no run
	// is open or to come, and no call of OnExhausted is owed. See Idler.IdleEnd.
	IdleEnd(updated time.Time) time.Time
	// PurgesIdle is asked in a turn at IdleEnd or later whether the job ends with it. If
	// not, IdleEnd must have moved on.
	PurgesIdle(ctx context.Context) (bool, error)
}

// Queuer is a Type that tells of the runs that wait for a place (see Driver.TakePermit).
type Queuer interface {
	// Queued is called in each turn that finds a run due, since the given time, and no place
	// free. An alarm that finds none is no turn: it stands in line without one.
	Queued(ctx context.Context, due time.Time) error
}

// Teller is a Type that adds to the event of a failure of its job.
type Teller interface {
	// Failing returns the payload of the event in place of ev. If that is too large, the
	// event has ev. It is called in the turn that stores the failure.
	Failing(ev jobs.Event) any
}

// Watcher is a Type that looks at its execution while it runs.
type Watcher interface {
	// Watch is called with each extension of the execution's lease, each Options.Heartbeat or a
	// little later, in the turn that stores it.
	Watch(ctx context.Context, x Execution) error
}

// Retirer is a Type with rows outside of its object, such as dead letters, or with others to
// tell of its end.
type Retirer interface {
	// Retiring is called in the turn that removes the job, before its rows go: by
	// Terminate, by its Retention, when it is idle for long, or when a run wished it.
	Retiring(ctx context.Context) error
}

// JobOptions are the settings of a Job.
type JobOptions struct {
	Options
	Type      string // for Meta
	Version   string // of the definition, for Meta
	Exhausted jobs.Exhausted
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
	OnExhausted func(ctx context.Context, x *jobs.Exhaustion) error
	// Stuck says that an execution which fails makes the job stuck, and not failed: the
	// job is tried again without end, after the waits of Retry.Backoff (zero means one
	// minute at first, doubling to ten), or sooner by Resume. The rest of Retry, and
	// jobs.Permanent, do not count. A run with its recoveries used up (R4) leaves
	// the job stuck until Resume. No run is given up, so OnExhausted is not called.
	Stuck bool
	// FreeResets says that an execution which is lost while its process lives, because
	// the object was reset, is repeated and costs no recovery.
	FreeResets bool
	// Retention says how long the job is kept after its end, and calls its hooks by the rules of
	// OnExhausted, but five times at most. The zero Retention keeps the job.
	Retention jobs.Retention
}

// Validate reports the first mistake in o, as an ErrInvalid.
func (o JobOptions) Validate() error {
	if err := o.Options.Validate(); err != nil {
		return err
	}
	return o.Retention.Validate()
}

// Job is one job that has at most one execution open: its metadata,
// its status, and when its runs begin and end. It is itself a Policy over an Engine, and
// asks its Type only for the parts in which job types differ. Calls of OnExhausted are
// further executions, so two may be open in all: one of a run and one of a call. It belongs to one instance,
// and its methods need the context of a turn.
type Job struct {
	e    *Engine
	st   *object.State
	o    JobOptions
	t    Type
	meta jobs.Meta // as stored

	hooks   []owedHook // calls of hooks that are owed, in order; see Meta.Hooks
	calling Token      // the execution of the first of them, if it is under way
}

// NewJob reads the job's metadata and makes the check of a wake-up. A
// constructor calls it when t has loaded its rows. The alarm of the object belongs to the job
// from then on, as with Attach.
func NewJob(ctx context.Context, st *object.State, o JobOptions, t Type) (*Job, error) {
	o.endless, o.resetsAreFree = o.Stuck, o.FreeResets
	if o.Stuck && o.Retry.Backoff == (jobs.Backoff{}) {
		o.Retry.Backoff = jobs.Exponential(time.Minute, 10*time.Minute)
	}
	if err := st.Driver().OwnAlarm(ctx, object.OwnedByJob); err != nil {
		return nil, err
	}
	l := &Job{st: st, o: o, t: t}
	if _, err := st.Storage().GetInto(ctx, jobs.MetaKey, &l.meta); err != nil {
		return nil, err
	}
	l.e = newEngine(st, o.Options, l)
	if !l.Exists() { // then no execution is open, and no call of a hook is owed
		return l, l.e.wake(ctx)
	}
	if err := l.e.load(ctx); err != nil {
		return nil, err
	}
	if err := l.loadHooks(ctx); err != nil {
		return nil, err
	}
	l.meta = normal(l.meta, l.Count())
	l.e.exact = rests(&l.meta)
	// A store of format 3 has no labels.
	if err := l.st.Driver().SetLabel(ctx, l.meta.Status.Label()); err != nil {
		return nil, err
	}
	if changed, err := l.retime(ctx); changed || err != nil {
		return l, err
	}
	return l, l.e.wake(ctx)
}

// Exists reports whether there is such a job.
func (l *Job) Exists() bool { return l.meta.Status != jobs.None }

// Meta returns the metadata as it is stored.
func (l *Job) Meta() jobs.Meta { return l.meta }

// Count returns how many executions of runs are open, which is 0 or 1.
func (l *Job) Count() int {
	if l.calling != "" {
		return l.e.Count() - 1
	}
	return l.e.Count()
}

// Engine is the engine of the job's executions.
func (l *Job) Engine() *Engine { return l.e }

// Now is the time of the present Turn; see Engine.Now.
func (l *Job) Now() time.Time { return l.e.Now() }

// Turn is a turn of the job that changes something; see Engine.Turn.
func (l *Job) Turn(ctx context.Context, fn func(ctx context.Context) error) error {
	return l.e.Turn(ctx, fn)
}

// Alarm is a wake-up; see Engine.Alarm.
func (l *Job) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return l.e.Alarm(ctx, info)
}

// put stores m and makes it the job's metadata, with the label that its status gives.
func (l *Job) put(ctx context.Context, m jobs.Meta) error {
	m.UpdatedAt = l.e.Now()
	m.Version = l.o.Version
	m.Attempt, m.RecoveryAttempts = m.Run.Attempt, m.Run.Recoveries
	m.Hooks = len(l.hooks)
	if err := l.st.Storage().Put(ctx, jobs.MetaKey, m); err != nil {
		return err
	}
	if err := l.st.Driver().SetLabel(ctx, m.Status.Label()); err != nil {
		return err
	}
	l.meta = m
	l.e.exact = rests(&m)
	return nil
}

// Next is the earliest time at which a run, or a call of a hook, begins, or the rest of
// the job is over; see Policy.
func (l *Job) Next() time.Time {
	at := earliest(l.NextRun(), l.nextHook())
	if !l.e.exact {
		return at
	}
	return earliest(at, l.restEnd())
}

// NextRun is when the next run begins; zero if none is due.
func (l *Job) NextRun() time.Time {
	switch m := &l.meta; {
	case m.Status == jobs.Stuck:
		return m.Run.RetryAt
	case m.Status != jobs.Running, len(l.hooks) >= maxHooks && l.o.OnExhausted != nil:
		return time.Time{}
	case !m.Run.RetryAt.IsZero():
		return m.Run.RetryAt
	case !m.NextAt.IsZero():
		return m.NextAt
	}
	return l.t.Next()
}

// Waiting reports whether a run is due and waits for a permit of the class.
func (l *Job) Waiting() bool {
	at := l.NextRun()
	return !at.IsZero() && !at.After(l.st.Now()) && l.st.Driver().AwaitsPermit()
}

// IdleEnd is when the job ends by itself if nothing happens; zero: it has something to
// do, or is not running, or its type keeps it. See IdlePurger.
func (l *Job) IdleEnd() time.Time {
	t, ok := l.t.(IdlePurger)
	switch {
	case !ok, l.meta.Status != jobs.Running, !l.NextRun().IsZero():
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

// purgeIdle ends a job that has been idle for long enough.
func (l *Job) purgeIdle(ctx context.Context, now time.Time) error {
	at := l.IdleEnd()
	if at.IsZero() || at.After(now) {
		return nil
	}
	purges, err := l.t.(IdlePurger).PurgesIdle(ctx)
	switch {
	case err != nil:
		return err
	case purges:
		return l.terminate(ctx, jobs.IdleReason)
	}
	if next := l.IdleEnd(); !next.IsZero() && !next.After(now) {
		return fmt.Errorf("jobs: %s: end of the idle job due at %s neither came nor moved", l.st.ID(), at)
	}
	return nil
}

// Due begins the run that is due, and the call of a hook, or ends a job that was
// idle for long, or ends its rest; see Policy.
func (l *Job) Due(ctx context.Context, now time.Time) error {
	if l.e.exact {
		if err := l.endRest(ctx, now); err != nil || l.e.purged {
			return err
		}
	}
	if err := l.callHook(ctx, now); err != nil {
		return err
	}
	if err := l.beginDue(ctx, now); err != nil {
		return err
	}
	return l.purgeIdle(ctx, now)
}

// beginDue begins the run that is due.
func (l *Job) beginDue(ctx context.Context, now time.Time) error {
	for {
		at := l.NextRun()
		if at.IsZero() || at.After(now) {
			return nil
		}
		free, err := l.st.Driver().TakePermit(ctx, l.meta.Run.Recovering)
		if q, ok := l.t.(Queuer); ok && !free && err == nil {
			err = q.Queued(ctx, at)
		}
		if !free || err != nil { // the alarm, which is due, fires when the run may begin
			return err
		}
		if err := l.begin(ctx, at); err != nil {
			return err
		}
		if next := l.NextRun(); !next.IsZero() && !next.After(at) {
			return fmt.Errorf("jobs: %s: run due at %s was neither begun nor moved", l.st.ID(), at)
		}
	}
}

// watch lets the type look at an execution that is alive.
func (l *Job) watch(ctx context.Context, x Execution) error {
	if w, ok := l.t.(Watcher); ok && !x.Hook {
		return w.Watch(ctx, x)
	}
	return nil
}

// begin opens an execution of the run that was due at the given time, unless the
// job type drops that run.
func (l *Job) begin(ctx context.Context, at time.Time) error {
	run := nextRun(l.meta, at)
	do, err := l.t.Prepare(ctx, run)
	switch {
	case err != nil && OfRuntime(err):
		return err
	case err != nil:
		failed := err // the work runs later, when err has another value
		do = func(context.Context, Execution) (Result, error) { return Result{}, failed }
	case do == nil:
		return nil
	}
	x, err := l.e.Begin(ctx, Spec{Run: run, Key: l.key(run), Work: do})
	if err != nil {
		return err
	}
	m := begunMeta(l.meta, x)
	if run.Attempt == 0 {
		m.NextAt, m.NextCause = time.Time{}, ""
	}
	return l.put(ctx, m)
}

// OfRuntime reports whether err is an error of the runtime. Such an error fails the turn
// and not the run: if it counted as a failure, a full disk would use up all attempts.
func OfRuntime(err error) bool {
	for _, e := range []error{object.ErrStorage, object.ErrReset, object.ErrShutdown, object.ErrNoTurn, object.ErrNoSpace, storage.ErrCorrupt} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// key is the outside idempotency key of a run (J8). It has the CreationID, because a job
// that was terminated and started again numbers its runs from 1 again.
func (l *Job) key(run jobs.Run) string {
	return l.st.ID().String() + "/" + l.meta.CreationID + "/" + strconv.FormatUint(run.Number, 10)
}

// Ended is the end of an execution; see Policy. All ends of runs go this way, so that status,
// counters, events and the next alarm cannot disagree.
func (l *Job) Ended(ctx context.Context, x Execution, out Outcome) error {
	if x.Hook {
		return l.hookEnded(ctx, out)
	}
	if out.Kind == GaveUp && l.o.OnExhausted != nil && !l.o.Stuck {
		if err := l.owe(ctx, x, out); err != nil {
			return err
		}
	}
	m := endedMeta(l.meta, x, out, l.e.Now())
	to, reason := l.after(out)
	switch {
	case to == jobs.Stuck && out.Kind == GaveUp:
		m = stuckMeta(m, l.meta, out)
	case to == jobs.Paused && l.o.Stuck && out.Kind == Again: // as a Pause of a stuck job
		m.Run = unstuckRun(m.Run, l.e.Now())
	}
	if to == jobs.Terminated {
		return l.terminate(ctx, reason)
	}
	until := l.meta.PausedUntil
	m, err := l.moved(m, to, reason)
	if err != nil {
		return err
	}
	m.Purging = to == jobs.Failed && l.purges(out)
	switch {
	case to == jobs.Paused:
		m.PausedUntil = until
	case to.Ended():
		m = l.retired(m)
	}
	if err := l.put(ctx, m); err != nil {
		return err
	}
	if !out.Waits() && to != jobs.Stuck {
		if err := l.t.Ended(ctx, x, out); err != nil {
			return err
		}
	}
	if to == jobs.Stuck && !newlyStuck(out) {
		return nil
	}
	return l.tellMove(ctx, jobs.Executing, to, reason)
}

// after is the status that follows from an outcome. The order of its cases is the order of
// importance: the wish of the work to end its job, then the failure of the job, then the
// policy Exhausted, then a Pause that has waited for this end.
func (l *Job) after(out Outcome) (to jobs.Status, reason string) {
	gaveUp := "given up: " + string(out.Reason)
	switch {
	case out.Kind == Quit:
		return out.Result.Wish.status(), out.Result.Reason
	case l.o.Stuck && out.Reason == jobs.ReasonRecoveries:
		return jobs.Stuck, gaveUp
	case out.Reason == jobs.ReasonRecoveries, out.Kind == GaveUp && l.o.Exhausted == jobs.Fail:
		return jobs.Failed, gaveUp
	case (l.o.Drops || l.o.Exhausted == jobs.Purge) && l.unread(out):
		return jobs.Failed, gaveUp
	case l.purges(out) && len(l.hooks) > 0: // the hook is called first
		return jobs.Failed, gaveUp
	case l.purges(out):
		return jobs.Terminated, gaveUp
	case l.meta.Pausing:
		return jobs.Paused, l.meta.StopReason
	case l.o.Stuck && out.Kind == Again:
		return jobs.Stuck, ""
	}
	return jobs.Running, ""
}

// purges reports whether the job is gone after an outcome.
func (l *Job) purges(out Outcome) bool {
	return out.Kind == GaveUp && out.Reason != jobs.ReasonRecoveries && l.o.Exhausted == jobs.Purge && !l.unread(out)
}

// unread reports whether a run was given up because something stored of the job
// could not be read: then all of it is kept, for a definition that can (J15).
func (l *Job) unread(out Outcome) bool {
	var bad *jobs.DecodeError
	return out.Kind == GaveUp && errors.As(out.Err, &bad) && bad.ID == l.st.ID()
}

// moved returns m in another status, if the table has the move (J3).
func (l *Job) moved(m jobs.Meta, to jobs.Status, reason string) (jobs.Meta, error) {
	if err := l.mayMove(m.Status, to); err != nil {
		return m, err
	}
	m.Status, m.StopReason, m.Pausing, m.Purging = to, Shorten(reason), false, false
	m.EndedAt, m.RetireAt, m.PausedUntil = time.Time{}, time.Time{}, time.Time{}
	m.StaleAt, m.Stale = time.Time{}, false
	return m, nil
}

// mayMove is nil if the table has the move, else a MoveError that names the job.
func (l *Job) mayMove(from, to jobs.Status) error {
	if from.CanMove(to) {
		return nil
	}
	return &jobs.MoveError{ID: l.st.ID(), From: from, To: to}
}

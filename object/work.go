package object

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/object/internal/crew"
	"github.com/holdfast-dev/holdfast/storage"
)

// Go starts fn on a goroutine beside the turns, once the present turn's commit is durable.
// If the turn fails, fn never starts. Over a dormant store Go returns ErrDormant. Over a replicated log fn starts once
// the log has shown that no other process had taken it over, also after a turn without writes. fn is work of the object, and the running fn is a
// routine; it may use the object only through Do, because other turns run at the same time.
//
// The ctx of fn ends when the instance goes, and when the context of Host.Shutdown ends.
// Over a replicated log that has not answered for two seconds it ends with ErrSuspended, and when fn has returned the instance is
// reset, unless ClassOptions.OverlapWhileUnconfirmed is set. It does not end when Shutdown begins, so that routines have time to end by themselves; a
// routine that should end early looks at State.Closing. The object stays in memory while
// fn runs. A panic of fn is logged and ends fn only. name stands in the log.
func (s *State) Go(ctx context.Context, name string, fn func(context.Context)) error {
	return s.driver.Start(ctx, &Routine{once: true}, name, fn)
}

// Start is Go for work that the caller can cancel, by r. A Routine can be started only
// once; a second time is an error. If TakePermit has taken a permit in this turn, r holds
// it until fn has returned.
func (d *Driver) Start(ctx context.Context, r *Routine, name string, fn func(context.Context)) error {
	t, err := d.state.turn(ctx)
	if err != nil {
		return err
	}
	if err := d.Awake(); err != nil {
		return err
	}
	if r.state != nil {
		return fmt.Errorf("%s: object: routine %q was started twice; make another Routine", d.state.act.object.ID, name)
	}
	r.state, r.name, r.fn = d.state, name, fn
	r.permit, t.permit = t.permit, false
	r.begun = afterwards{routine: r, earlier: t.after}
	t.after = &r.begun
	return nil
}

// Awake returns ErrDormant if the store is dormant: a job begins no execution then, neither here
// nor for a worker outside. It may be called from any goroutine.
func (d *Driver) Awake() error {
	if d.state.act.host.store.Dormant() {
		return named(d.state.act.object.ID, ErrDormant)
	}
	return nil
}

// Routine is work that runs on a goroutine beside the turns, see Driver.Start. Its methods
// may be called from any goroutine. The zero value is a Routine that has yet to be started.
//
// Start and StartSuspect set the fields above mu in a turn, before the routine begins. Only
// settle changes begun later, in the same turn.
type Routine struct {
	state  *State
	name   string
	fn     func(context.Context)
	begun  afterwards // its link in the list of steps that wait for the turn's commit
	permit bool       // it has one of the class's permits
	once   bool       // no job type runs it again: see suspension.returned
	// suspect is not nil if the routine is held back at first; see StartSuspect.
	suspect *suspect

	mu    sync.Mutex     // guards the fields below
	cause error          // why it was cancelled, or has ended; nil until then
	joint *joinedContext // of routineContext; nil until Done or Value makes it
}

// Cancel ends the context of r with cause, now or as soon as r begins. It does nothing if
// r has ended. A routine that is held back (StartSuspect) begins at once, so that its
// function can see the cancellation and clean up.
func (r *Routine) Cancel(cause error) {
	if j := r.end(cause); j != nil {
		j.cancel(cause)
	}
	if r.suspect != nil {
		r.suspect.release()
	}
}

// CutOff reports whether the instance or the host has ended, and with it the context of r.
// A Cancel does not count. r must have been started.
func (r *Routine) CutOff() bool {
	return r.state.err() != nil || r.state.act.host.lifecycle.ctx.Err() != nil
}

// end notes why r ends, unless it has ended before, and returns its joined context if it
// has one, which the caller ends without r.mu.
func (r *Routine) end(cause error) *joinedContext {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause == nil {
		r.cause = cause
	}
	return r.joint
}

// endCause returns why r was cancelled or has ended, or nil.
func (r *Routine) endCause() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause
}

// startRoutines starts the routines of a turn together, once its commit is durable. The
// goroutine that owns the turn calls it. The routines count as under way from here on, so
// that the object is not evicted and the host not shut down before they have run. If the
// store fails first they never run, because the commit that began them may be lost.
func (a *activation) startRoutines(routines []crew.Runner) {
	h := a.host
	a.holds.Add(int32(len(routines)))
	h.lifecycle.busy.Add(int64(len(routines)))
	h.afterDurable.Do(h.store.Seen(storage.Ticket(a.last.Load())), func(err error) {
		if err == nil {
			h.crew.Add(h.flightLog.suspects.holdRoutines(routines)...)
			return
		}
		for _, r := range routines {
			(*Routine)(r.(*startedRoutine)).over()
		}
	})
}

// over gives back the permit of r and its holds on object and host. It is called once for
// each routine, also for one that never begins.
func (r *Routine) over() {
	if r.permit {
		r.state.act.hosted.permits.over(1)
	}
	r.state.act.routineOver()
}

// routineOver takes one routine off the counts of the object and the host. The object may
// be evicted when its last routine is over.
func (a *activation) routineOver() {
	a.holds.Add(-1)
	a.host.lru.idled(a)
	a.host.lifecycle.leave()
}

// startedRoutine is a Routine as the crew runs it. It is a type of its own, so that users
// of Routine cannot call Run.
type startedRoutine Routine

// Run runs the function of the routine, on a goroutine of the crew. The deferred calls end
// its context and give everything back, also if the function ends its goroutine.
func (started *startedRoutine) Run() {
	r := (*Routine)(started)
	s, h := r.state, r.state.act.host
	if h.suspension != nil && h.suspension.holds(started) {
		return // resume adds it to the crew again
	}
	defer r.over()
	if h.suspension != nil {
		defer h.suspension.returned(r)
	}
	if r.suspect != nil {
		defer h.flightLog.suspects.ended(r.suspect.subject)
	}
	defer func() {
		if j := r.end(context.Canceled); j != nil {
			j.end()
		}
	}()
	if h.seams.Probe != nil {
		h.seams.At("work/start", s.act.object.ID.String())
	}
	log := func(err error) { s.Log().Error("work panicked", telling(err, "work", r.name)...) }
	if err := guard(&s.act.object.ID, func() error { r.fn(routineContext{r}); return nil }, log); err != nil {
		log(err)
	}
}

// Context returns a context that ends when the instance or the host does. It outlives the
// contexts of routines, so a job type uses it for steps after the end of a routine, for
// example to store the result of one that was cancelled. The caller calls release when it no
// longer needs the context.
func (d *Driver) Context() (ctx context.Context, release func()) {
	j := join(d.state.act.host.lifecycle.ctx, d.state)
	return j, j.end
}

// routineContext is the context of a routine: it ends with the routine, the instance and
// the host. A joinedContext costs 4 allocations and 376 bytes, so a routineContext makes it
// only when Done or Value is called first; a short task calls neither.
type routineContext struct{ *Routine }

// joined returns the joined context of the routine, and makes it at the first call. If the
// routine has been cancelled or has ended, the context is made cancelled.
func (c routineContext) joined() *joinedContext {
	r := c.Routine
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.joint == nil {
		r.joint = join(r.state.act.host.lifecycle.ctx, r.state)
		if r.cause != nil {
			r.joint.cancel(r.cause)
			r.joint.canceller.forget()
		}
	}
	return r.joint
}

// Done is closed when the routine, the instance or the host has ended, or the routine was
// cancelled.
func (c routineContext) Done() <-chan struct{} { return c.joined().Done() }

// Err returns context.Canceled if the context has ended, or nil. It makes no joined context.
func (c routineContext) Err() error {
	if c.endCause() != nil || c.CutOff() {
		return context.Canceled
	}
	return nil
}

// Value ignores user keys; package context calls it to find its own parent.
func (c routineContext) Value(key any) any {
	if key == (turnKey{}) {
		return nil // a routine runs in no turn
	}
	return c.joined().Value(key)
}

// Deadline reports that there is none.
func (routineContext) Deadline() (at time.Time, ok bool) { return at, false }

// Do runs fn as a turn of the object, from a routine. It waits until the object is free, and
// returns when the turn's commit is durable, with fn's error if it has one. A turn that
// fails leaves no trace. It returns ErrReset if the instance is gone, and ErrDeadlock if
// ctx is that of a turn of the same object, because the turn would wait for itself.
//
// With the context of another object's turn, Do is a call from that object: it returns
// when the turn has ended, and the reply of the other object waits until it is durable.
//
// With the option Unconfirmed, Do returns when the turn has ended and does not wait for the
// disk; for example, a routine that shows its progress can lose the newest of it. Do refuses
// Idempotent, because it has no answer that could be stored.
func (s *State) Do(ctx context.Context, fn func(context.Context) error, opts ...CallOption) error {
	if s.err() != nil {
		return named(s.act.object.ID, ErrReset)
	}
	r := &Request{state: s, exempt: true, what: &whatWork}
	if r.init(s.act.object.ID, doOp(fn), opts); r.key != "" {
		return fmt.Errorf("%s: object: Do takes no Idempotent, because it has no answer to be stored", r.id)
	}
	return s.act.host.Invoke(ctx, r)
}

// doOp is the function of a Do. Unlike a funcOp around it, it needs no closure.
type doOp func(ctx context.Context) error

func (f doOp) run(ctx context.Context, _ *activation) error { return f(ctx) }

// Suspicion is a host's knowledge about an execution that crashes have cut off. An
// execution that was running at several crashes in a row may be their cause, so it is a
// suspect: the host holds it back at first and then tries the suspects one after another.
// Job types ask for it; see Driver.StartSuspect.
type Suspicion struct {
	// Charges counts the crashes in a row at which this execution ran and no other
	// suspect did.
	Charges int
	// Tried says that the execution ran when the process before died, although it had
	// been held back at first.
	Tried bool
	// Cleared is the epoch of the newest opening with a crash that counts against no
	// execution. Crashes of earlier openings do not count either.
	Cleared uint64

	listed bool     // an earlier process has stored it as a suspect
	found  *inquiry // the record of earlier crashes, as Open has read it
}

// Held reports whether the execution must be started by Driver.StartSuspect, because it
// may be the cause of the crashes. cuts is how many crashes have cut it off in a row since
// Cleared; epoch is the opening of the last one.
func (s Suspicion) Held(cuts int, epoch uint64) bool {
	return s.listed || s.found.suspected(cuts, epoch)
}

// Suspicion returns the host's knowledge about the execution of this object with the given
// key. Any goroutine may call it, also outside of turns.
func (d *Driver) Suspicion(key string) Suspicion {
	q := &d.state.act.host.flightLog.suspects
	x := subject{id: d.state.act.object.ID, key: key}
	known := Suspicion{Charges: q.charged(x), Tried: q.tried[x], Cleared: q.found.cleared, found: &q.found}
	_, known.listed = q.setOf(x, 0, 0)
	return known
}

// StartSuspect is Start for the work of the execution with the given key, if
// Suspicion.Held says that it must be held back. fn begins once the suspects before it
// have been cleared: seconds after Open, or minutes if they run long, or up to an hour
// after Open if crashes are charged to it. If the instance goes before that, or the host
// shuts down, fn never runs.
func (d *Driver) StartSuspect(ctx context.Context, r *Routine, key, name string, fn func(context.Context)) error {
	if err := d.Start(ctx, r, name, fn); err != nil {
		return err
	}
	x := subject{id: d.state.act.object.ID, key: key}
	set, listed := d.state.act.host.flightLog.suspects.setOf(x, 0, 0)
	if !listed {
		set = freshSet
	}
	r.suspect = &suspect{subject: x, set: set, routine: r}
	return nil
}

// ClearSuspect ends the suspicion against the execution with the given key when the commit of
// the turn is durable, as its end does, because it has made progress. If it was the last one
// on trial, the next suspects are tried. It costs a load of an atomic unless processes have
// died in a row.
func (d *Driver) ClearSuspect(ctx context.Context, key string) error {
	t, err := d.state.turn(ctx)
	if err != nil {
		return err
	}
	h := d.state.act.host
	s := &h.flightLog.suspects
	if !s.some.Load() {
		return nil
	}
	x := subject{id: d.state.act.object.ID, key: key}
	t.then(func(at storage.Ticket) {
		h.afterDurable.Do(at, func(err error) {
			if err == nil {
				s.ended(x)
			}
		})
	})
	return nil
}

// holdRoutines holds back those of the routines that are suspects, and returns the others.
// It is called once the commit that began them is durable, and must not wait.
func (s *suspects) holdRoutines(routines []crew.Runner) []crew.Runner {
	if !s.some.Load() {
		return routines
	}
	var free []crew.Runner
	for _, started := range routines {
		r := (*Routine)(started.(*startedRoutine))
		if r.suspect == nil || r.endCause() != nil || !s.holdRoutine(r) {
			free = append(free, started)
		}
	}
	return free
}

// holdRoutine holds r back until its trial, its cancellation, or the end of its instance,
// and reports whether it did. It registers with the instance first, because the trial may take
// x over as soon as x is held. An end or a cancellation that came before x was held has
// found nothing to give up or to release, so holdRoutine looks for both again.
func (s *suspects) holdRoutine(r *Routine) bool {
	x := r.suspect
	gone := func(error) {
		if s.remove(x) {
			r.over()
		}
	}
	r.state.onEnd(&x.canceller, gone)
	if !s.hold(x) {
		x.canceller.forget()
		return false
	}
	if r.endCause() != nil {
		x.release()
	}
	if err := r.state.err(); err != nil {
		gone(err)
	}
	return true
}

// release starts the routine of x if it is held. Only the goroutine that removes x from
// the suspects starts the routine, so that it is started once.
func (x *suspect) release() {
	h := x.routine.state.act.host
	if h.flightLog.suspects.remove(x) {
		x.canceller.forget()
		h.crew.Add((*startedRoutine)(x.routine))
	}
}

package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
)

// wake arms the object if its stored state asks for it: an orphan from its state
// (R3), a lost execution for its recovery (R2), and a job if its definition now asks
// for an earlier time (C5). No other alarm is moved, and none to a later time (R5). It
// asks recovery.Check about an orphan only; load has called judgeLoss for each open
// execution, so that next has the time of its recovery.
func (e *Engine) wake(ctx context.Context) error {
	at, armed, err := e.st.Alarm(ctx)
	if err != nil {
		return err
	}
	due := e.next()
	if due.IsZero() {
		return e.wakeIdle(ctx, at, armed)
	}
	a := recovery.Check(recovery.Snapshot{Now: e.Now(), Due: due, HasAlarm: armed}, e.o.Limits)
	switch {
	case a.Verb == recovery.Arm:
		err := e.st.Driver().Recovered(ctx, object.Recovery{
			Cause: string(a.Cause), Age: max(0, e.Now().Sub(a.At)), Action: string(a.Verb),
		})
		if err != nil {
			return err
		}
		return e.st.Driver().SetAlarm(ctx, a.At)
	case !due.Before(at):
		return nil
	case e.losses() > 0:
		return e.st.Driver().SetAlarm(ctx, due)
	}
	return e.advance(ctx, at, due)
}

// wakeIdle arms an object that has nothing to do for its end. An older version left
// such objects without an alarm; that is no loss to be told of.
func (e *Engine) wakeIdle(ctx context.Context, at time.Time, armed bool) error {
	switch end := e.idleEnd(); {
	case end.IsZero():
		return nil
	case !armed:
		return e.st.Driver().SetAlarm(ctx, end)
	case end.Before(at):
		return e.advance(ctx, at, end)
	}
	return nil
}

// advance moves the alarm from at to due, which is earlier, because the definition has
// changed. An alarm that is due anyway stays, and so does one that waits for a retry:
// each instance would begin its attempts anew.
func (e *Engine) advance(ctx context.Context, at, due time.Time) error {
	if !at.After(e.Now()) {
		return nil
	}
	failures, err := e.st.Driver().AlarmFailures(ctx)
	if err == nil && failures == 0 {
		err = e.st.Driver().SetAlarm(ctx, due)
	}
	return err
}

// losses counts the open executions that have no routine here, because their process has
// died, or because their holder is outside.
func (e *Engine) losses() (n int) {
	for _, x := range e.open {
		if !x.alive() {
			n++
		}
	}
	return n
}

// Alarm is a wake-up. It extends the leases that are due for it, recovers lost executions,
// begins the executions that are due, and sets the next alarm.
func (e *Engine) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	return e.Turn(ctx, e.attend)
}

// attend looks at the open executions that are due for it. Where these would write
// too much for one batch, the next wake-up, which comes at once, goes on.
func (e *Engine) attend(ctx context.Context) error {
	e.takeLost()
	now := e.Now()
	if e.checkAt.IsZero() || e.checkAt.After(now) {
		return nil
	}
	defer e.lookAgain()
	hold := e.st.Driver().RecoveryHold() > 0
	for _, x := range e.sorted() {
		var err error
		if hold && !x.alive() {
			e.judgeLoss(x) // the wall clock may have jumped
		}
		switch {
		case e.open[x.Token] != x: // ended with another
		case x.alive() && x.routine.overdue(now):
			x.routine.Cancel(jobs.ErrTimeout)
			err = e.conclude(ctx, x, end{err: fmt.Errorf("%w and did not return", jobs.ErrTimeout)})
		case x.alive():
			err = e.renew(ctx, x, now)
		case !x.action.At.After(now):
			err = e.recover(ctx, x)
		}
		if err != nil {
			return err
		}
		if written, err := e.st.Driver().WrittenBytes(ctx); written >= e.mergeBytes() || err != nil {
			return err
		}
	}
	return nil
}

// lookAgain finds the time of the next look at the open executions.
func (e *Engine) lookAgain() {
	e.checkAt = time.Time{}
	for _, x := range e.open {
		e.note(x)
	}
}

// renew extends the lease of an execution that is alive (J7), if at least half of the time
// to that has passed: executions that began at about the same time share a batch.
func (e *Engine) renew(ctx context.Context, x *execution, now time.Time) error {
	r := x.routine
	if now.Before(r.renewAt.Add(-r.heartbeat / 2)) {
		return nil
	}
	x.extend(now.Add(r.lease))
	x.Held = x.Held && r.start().IsZero()
	r.renewAt = now.Add(r.heartbeat)
	if l, ok := e.p.(*Job); ok {
		if err := l.watch(ctx, *x.Execution); err != nil {
			return err
		}
	}
	return e.save(ctx, x)
}

// recover ends a lost execution, as Check has found it.
func (e *Engine) recover(ctx context.Context, x *execution) error {
	l := e.lossOf(x)
	attempt := x.Run.Recoveries
	if !l.free && !l.spent && l.cause != recovery.CauseOwnerLost {
		attempt++
	}
	err := fmt.Errorf("%w: %s", ErrLost, l.cause)
	switch {
	case l.spent && l.cause == recovery.CauseOwnerLost && x.Run.OwnersLost > 0:
		err = fmt.Errorf("%w: %d owners of the log were lost in a row while it ran", ErrLost, x.Run.OwnersLost+1)
	case l.spent && l.charges > 0:
		err = fmt.Errorf("%w: the process died %d times while it ran and no other suspect did", ErrLost, l.charges)
	}
	told := e.st.Driver().Recovered(ctx, object.Recovery{
		Task:  e.taskName(x.Subject),
		Cause: string(l.cause), Age: max(0, e.Now().Sub(x.Began)), Attempt: attempt, Action: string(x.action.Verb), GivenUp: l.spent,
	})
	if told != nil {
		return told
	}
	return e.conclude(ctx, x, end{err: err, lost: &l})
}

// lossOf is how an execution without a routine here was lost.
func (e *Engine) lossOf(x *execution) loss {
	s := e.st.Driver().Suspicion(x.record())
	began := !x.Held || s.Tried && x.Epoch != e.st.Driver().Epoch()
	return loss{
		cause: x.action.Cause, spent: x.action.Verb == recovery.Fail,
		free: !began || x.action.Cause == recovery.CauseShutdown || x.action.Cause == recovery.CauseSuspended || e.o.resetsAreFree && !died(x.action.Cause) ||
			x.action.Cause == recovery.CauseStale && e.cutsAreFree(x),
		charges: s.Charges, epoch: x.Epoch, cleared: s.Cleared,
	}
}

// died reports whether the process that ran a lost execution has gone.
func died(c recovery.Cause) bool { return c == recovery.CauseCrash || c == recovery.CauseOwnerLost }

// recoverSuspended repeats an execution whose work has returned because the host was suspended. It costs nothing, as after a
// shutdown.
func (e *Engine) recoverSuspended(ctx context.Context, x *execution) error {
	x.routine = nil
	x.action = recovery.Action{Verb: recovery.Rerun, At: e.Now(), Cause: recovery.CauseSuspended}
	return e.recover(ctx, x)
}

// takeLost gives up the routines of end batches that failed. Their results are gone, so they are
// recovered like executions that are not alive. It is step 7 of the story of an end.
func (e *Engine) takeLost() {
	for _, t := range e.ends.takeLost() {
		if x, ok := e.open[t]; ok {
			x.routine = nil
			e.judgeLoss(x)
			e.note(x)
		}
	}
}

// next is the earliest time at which the engine or the job type has something to
// do. The alarm is set to it; if it is zero, the alarm is set to idleEnd.
func (e *Engine) next() time.Time {
	return earliest(e.p.Next(), e.checkAt)
}

// idleEnd is when an object that has nothing to do ends by itself; zero: never.
func (e *Engine) idleEnd() time.Time {
	if p, ok := e.p.(Idler); ok {
		return p.IdleEnd()
	}
	return time.Time{}
}

// earliest returns the earlier of two times, of which zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// settle stores the mark and the alarm that follow from the state. It is the last step of
// each turn, so that an execution is never stored as open without an alarm (J5).
func (e *Engine) settle(ctx context.Context) error {
	if err := e.setMark(ctx); err != nil {
		return err
	}
	return e.arm(ctx)
}

// setMark keeps the open-execution mark while any execution is open. The next process finds
// the object by the mark without a look at any other object (R1). One of an
// earlier instance is replaced, so that the mark tells which process has them.
func (e *Engine) setMark(ctx context.Context) error {
	want, set := noMark, e.st.Driver().CloseExecution
	if len(e.open) > 0 {
		want, set = ownMark, func(ctx context.Context) error { return e.st.Driver().OpenExecution(ctx, nil) }
	}
	if e.mark == want {
		return nil
	}
	e.mark = want
	return set(ctx)
}

// arm sets the alarm that follows from the state. A lazy alarm that is too early is
// moved all the same once nothing is to be done: that costs rows in a batch which is
// written anyway, and spares the idle object a wake-up.
func (e *Engine) arm(ctx context.Context) error {
	due, lazy := e.next(), e.o.LazyAlarm && !e.exact
	if due.IsZero() {
		due, lazy = e.idleEnd(), false
	}
	at, armed, err := e.st.Alarm(ctx)
	switch {
	case err != nil:
		return err
	case due.IsZero() && armed:
		return e.st.Driver().DeleteAlarm(ctx)
	case due.IsZero(), armed && at.Equal(due):
		return nil
	case lazy && armed && at.Before(due) && at.After(e.Now()):
		return nil
	}
	return e.st.Driver().SetAlarm(ctx, due)
}

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// Work does one execution, beside the turns of the object. It touches storage
// only through State.Do. It encodes its result before it returns, so that a value
// that cannot be encoded fails the run and not the job. Its ctx ends at the timeout,
// when the execution is cancelled, when the job ends and when the host does.
type Work func(ctx context.Context, x Execution) (Result, error)

// routine is a Work that was started. Its goroutine reads the fields that are set once, before
// it starts; renewAt belongs to the turns of the object, and the atomic fields to both.
type routine struct {
	object.Routine
	timeout   time.Duration // 0: none
	lease     time.Duration
	heartbeat time.Duration
	renewAt   time.Time // when to extend the lease
	// began is when the routine began to run, in nanoseconds since 1970; 0 if it has not. It waits for the commit that begins the
	// execution, and for its turn if it is held back or the host is suspended.
	began atomic.Int64

	engine *Engine
	do     Work
	given  Execution // the argument of do
	size   int       // see Spec.Size

	cancelled atomic.Bool // by Engine.Cancel
}

func (e *Engine) newRoutine(x *Execution, s *Spec) *routine {
	r := &routine{
		timeout: cmp.Or(s.Timeout, e.o.Timeout), lease: x.Lease.Sub(x.Began), heartbeat: e.o.Heartbeat,
		engine: e, do: s.Work, given: *x, size: s.Size,
	}
	if r.heartbeat >= r.lease {
		r.heartbeat = r.lease / 3
	}
	r.renewAt = x.Began.Add(r.heartbeat)
	return r
}

// overdue reports whether r has gone on for a lease beyond its timeout. Go cannot end a
// goroutine, so such a routine is fenced off: its execution ends without it, and a result
// that it returns later changes nothing.
func (r *routine) overdue(now time.Time) bool {
	began := r.start()
	return r.timeout > 0 && !began.IsZero() && now.Sub(began) >= r.timeout+r.lease
}

// hold notes, before r is stored, whether it is held back at first.
func (r *routine) hold(held bool) { r.given.Held = held }

// start is when r began to run, or zero if it has not. The timeout counts from it.
func (r *routine) start() time.Time {
	if at := r.began.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// run is r beside the turns.
func (r *routine) run(ctx context.Context) {
	if r.given.Held && ctx.Err() != nil { // it was cancelled before it began
		r.finish(Result{}, context.Cause(ctx))
		return
	}
	r.began.Store(r.engine.st.Now().UnixNano())
	ctx, release := r.limited(ctx)
	ctx, ended := r.engine.st.Driver().ObserveExecution(ctx)
	var res Result
	err := seam.Guard(func() (err error) {
		res, err = r.do(ctx, r.given)
		return err
	}, func(p *seam.PanicError) error {
		if p.Exited() { // nothing after Guard runs
			p.TakeStack()
			ended(p)
			r.finish(Result{}, p)
		}
		return p
	})
	if err != nil && errors.Is(context.Cause(ctx), jobs.ErrTimeout) && !errors.Is(err, jobs.ErrTimeout) {
		err = fmt.Errorf("%w: %w", jobs.ErrTimeout, err)
	}
	release()
	ended(cmp.Or(err, res.Err))
	r.finish(res, err)
}

// limited is the context of r with its timeout.
func (r *routine) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.timeout == 0 {
		return ctx, func() {}
	}
	return r.engine.st.Driver().Seams().WithDeadline(ctx, r.start().Add(r.timeout), jobs.ErrTimeout)
}

// panicBytes is about how many bytes a panic of the work adds to its end batch, because the
// stack and the text may be stored twice: with the work and in its dead letter.
func panicBytes(err error) int {
	p, ok := err.(*seam.PanicError)
	if !ok {
		return 0
	}
	return 2 * (min(len(p.Stack), object.MaxStackBytes) + MaxTextBytes)
}

// finish hands the end of r to the object. A routine that was cut off, by a shutdown
// or the end of the instance, stays open: the next instance recovers it. One that was cut off because the log did not answer
// is recovered by its end, so that it never runs beside its repeat.
func (r *routine) finish(res Result, err error) {
	e := r.engine
	r.Cancel(context.Canceled)
	if s := e.st.Driver().Seams(); s.Probe != nil {
		s.At("work/end", e.st.ID().String())
	}
	if err != nil && r.CutOff() {
		return
	}
	how := end{token: r.given.Token, result: res, err: err, size: res.Size}
	if res.Err != nil {
		how.size += 2*MaxTextBytes + panicBytes(res.Err)
	}
	if err != nil {
		how.cancelled, how.size = r.cancelled.Load(), r.size+res.Size+panicBytes(err)
		how.suspended = r.Suspended() && !how.cancelled
	}
	if e.ends.add(how) {
		e.serveEnds()
	}
}

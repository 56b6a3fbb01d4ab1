package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// Work does one execution, beside the turns of the object. It touches storage
// only through State.Do. It encodes what it made before it returns, so that what
// cannot be encoded fails the run and not the job. Its ctx ends at the timeout,
// when the execution is cancelled, when the job ends and when the host does.
type Work func(ctx context.Context, x Execution) (Result, error)

// work is a Work that was started. The fields above do belong to the turns.
type work struct {
	object.Work
	timeout   time.Duration // 0: none
	lease     time.Duration
	heartbeat time.Duration
	began     time.Time
	renewAt   time.Time // when to extend the lease
	// released is when a work that was held back began, in nanoseconds since 1970; 0
	// if it has not, or was not held.
	released atomic.Int64

	engine *Engine
	do     Work
	given  Execution // what do is told
	size   int       // see Spec.Size

	stopped   bool        // belongs to the turns
	cancelled atomic.Bool // by Engine.Cancel or Engine.Close
}

func (e *Engine) newWork(x *Execution, s *Spec) *work {
	w := &work{
		timeout: cmp.Or(s.Timeout, e.o.Timeout), lease: x.Lease.Sub(x.Began), heartbeat: e.o.Heartbeat, began: x.Began,
		engine: e, do: s.Work, given: *x, size: s.Size,
	}
	if w.heartbeat >= w.lease {
		w.heartbeat = w.lease / 3
	}
	w.renewAt = w.began.Add(w.heartbeat)
	return w
}

// overdue reports whether w has gone on for a lease beyond its timeout.
func (w *work) overdue(now time.Time) bool {
	began := w.start()
	return w.timeout > 0 && !began.IsZero() && now.Sub(began) >= w.timeout+w.lease
}

// hold notes, before w is stored, whether it is held back at first.
func (w *work) hold(held bool) { w.given.Held = held }

// start is when w began to run, or zero if it is held back.
func (w *work) start() time.Time {
	if !w.given.Held {
		return w.began
	}
	if at := w.released.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// stop ends the context of w, now or as soon as it begins.
func (w *work) stop(cause error, cancelled bool) {
	if !w.stopped {
		w.stopped = true
		w.cancelled.Store(cancelled)
	}
	w.Cancel(cause)
}

// run is w beside the turns.
func (w *work) run(ctx context.Context) {
	if w.given.Held {
		if ctx.Err() != nil { // it was cancelled before it began
			w.finish(Result{}, context.Cause(ctx))
			return
		}
		w.released.Store(w.engine.st.Now().UnixNano())
	}
	ctx, release := w.limited(ctx)
	res, err := protect(func() (Result, error) { return w.do(ctx, w.given) }, func(err error) { w.finish(Result{}, err) })
	if err != nil && errors.Is(context.Cause(ctx), ErrTimeout) && !errors.Is(err, ErrTimeout) {
		err = fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	release()
	w.finish(res, err)
}

// limited is the context of w with its timeout.
func (w *work) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.timeout == 0 {
		return ctx, func() {}
	}
	return w.engine.st.Seams().WithDeadline(ctx, w.start().Add(w.timeout), ErrTimeout)
}

// finish hands the end of w to the object. A work that was cut off, by a shutdown
// or the end of the activation, stays open: the next activation recovers it.
func (w *work) finish(res Result, err error) {
	e := w.engine
	w.Cancel(context.Canceled)
	if s := e.st.Seams(); s.Probe != nil {
		s.At("work/end", e.st.ID().String())
	}
	if err != nil && w.CutOff() {
		return
	}
	end := ended{token: w.given.Token, result: res, err: err, size: res.Size}
	if err != nil {
		end.cancelled, end.size = w.cancelled.Load(), w.size
	}
	if e.ends.add(end) {
		e.serveEnds()
	}
}

// protect turns a panic of user code into an error. If the code ends its
// goroutine, nothing after it runs, and the error is given to exit.
func protect(do func() (Result, error), exit func(error)) (res Result, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		if killed, ok := v.(seam.Killed); ok {
			panic(killed)
		}
		err = &PanicError{Value: v, Stack: string(debug.Stack())}
		if v == nil { // runtime.Goexit
			exit(err)
		}
	}()
	res, err = do()
	returned = true
	return res, err
}

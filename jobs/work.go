package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// Work does one execution, beside the turns of the object. It touches storage
// only through State.Do. It encodes what it made before it returns, so that what
// cannot be encoded fails the run and not the job. Its ctx ends at the timeout,
// when the execution is cancelled, when the job ends and when the host does.
type Work func(ctx context.Context, x Execution) (Result, error)

// work is a Work that was started. The fields above mu belong to the turns.
type work struct {
	timeout   time.Duration // 0: none
	lease     time.Duration
	heartbeat time.Duration
	began     time.Time
	renewAt   time.Time // when to extend the lease

	mu        sync.Mutex
	cancel    context.CancelCauseFunc // nil until it runs
	cause     error                   // why it was stopped
	cancelled bool                    // by Engine.Cancel or Engine.Close
}

func (e *Engine) newWork(now time.Time, lease time.Duration, s Spec) *work {
	w := &work{timeout: s.Timeout, lease: lease, heartbeat: e.o.Heartbeat, began: now}
	if w.timeout == 0 {
		w.timeout = e.o.Timeout
	}
	if w.heartbeat >= lease {
		w.heartbeat = lease / 3
	}
	w.renewAt = now.Add(w.heartbeat)
	return w
}

// overdue reports whether w has gone on for a lease beyond its timeout.
func (w *work) overdue(now time.Time) bool {
	return w.timeout > 0 && now.Sub(w.began) >= w.timeout+w.lease
}

// stop ends the context of w, now or as soon as it has one.
func (w *work) stop(cause error, cancelled bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause == nil {
		w.cause, w.cancelled = cause, cancelled
	}
	if w.cancel != nil {
		w.cancel(cause)
	}
}

// context is the one that the Work gets.
func (w *work) context(parent context.Context, s *seam.Seams) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	w.mu.Lock()
	w.cancel = cancel
	if w.cause != nil {
		cancel(w.cause)
	}
	w.mu.Unlock()
	if w.timeout == 0 {
		return ctx, func() { cancel(context.Canceled) }
	}
	ctx, stop := s.WithDeadline(ctx, w.began.Add(w.timeout), ErrTimeout)
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// wasCancelled reports whether Engine.Cancel stopped w.
func (w *work) wasCancelled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cancelled
}

// ended is a work that has returned.
type ended struct {
	token     Token
	result    Result
	err       error
	cancelled bool
}

// start runs a work when the turn's batch is durable.
func (e *Engine) start(ctx context.Context, x *execution, do Work) error {
	w, given := x.work, x.Execution
	return e.st.Go(ctx, "execution", func(ctx context.Context) {
		finish := func(res Result, err error) { e.finish(ctx, w, given.Token, res, err) }
		inner, release := w.context(ctx, e.st.Seams())
		res, err := protect(func() (Result, error) { return do(inner, given) }, func(err error) { finish(Result{}, err) })
		if err != nil && errors.Is(context.Cause(inner), ErrTimeout) && !errors.Is(err, ErrTimeout) {
			err = fmt.Errorf("%w: %w", ErrTimeout, err)
		}
		release()
		finish(res, err)
	})
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

// finish hands the end of a work to the object. Works that end while another end
// is being stored share the next batch, up to Options.MergeEnds. A work that was
// cut off, by a shutdown or the end of the activation, stays open: the next
// activation recovers it.
func (e *Engine) finish(ctx context.Context, w *work, t Token, res Result, err error) {
	e.st.Seams().At("work/end", e.st.ID().String())
	if err != nil && ctx.Err() != nil {
		return
	}
	q := &e.ends
	q.mu.Lock()
	q.queue = append(q.queue, ended{t, res, err, err != nil && w.wasCancelled()})
	serve := !q.serving
	q.serving = true
	q.mu.Unlock()
	if !serve {
		return
	}
	for batch := e.takeEnds(); len(batch) > 0; batch = e.takeEnds() {
		if err := e.store(ctx, batch); err != nil {
			e.loseEnds(batch, err)
		}
	}
}

// store is the end batch of works.
func (e *Engine) store(ctx context.Context, batch []ended) error {
	return e.st.Do(ctx, func(ctx context.Context) error {
		return e.Turn(ctx, func(ctx context.Context) error {
			for _, end := range batch {
				x, ok := e.open[end.token]
				if !ok {
					e.st.Log().Debug("end of an execution is stale", "error", e.stale(end.token))
					continue
				}
				if err := e.conclude(ctx, x, ending{result: end.result, err: end.err, cancelled: end.cancelled}); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// mergeBytes bounds the results that are stored in one end batch.
const mergeBytes = 1 << 20

// takeEnds takes the next ends from the queue, or ends the service of it.
func (e *Engine) takeEnds() []ended {
	q := &e.ends
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.queue) && n < e.o.MergeEnds && (n == 0 || bytes+q.queue[n].result.Size <= mergeBytes) {
		bytes += q.queue[n].result.Size
		n++
	}
	batch := q.queue[:n:n]
	q.queue = q.queue[n:]
	q.serving = n > 0
	return batch
}

// loseEnds notes that an end batch failed.
func (e *Engine) loseEnds(batch []ended, err error) {
	level := slog.LevelWarn
	if errors.Is(err, object.ErrReset) || errors.Is(err, object.ErrShutdown) {
		level = slog.LevelDebug // they were cut off
	}
	e.st.Log().Log(context.Background(), level, "end of executions not stored", "executions", len(batch), "error", err)
	e.ends.mu.Lock()
	defer e.ends.mu.Unlock()
	for _, end := range batch {
		e.ends.lost = append(e.ends.lost, end.token)
	}
}

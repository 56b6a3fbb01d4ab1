package object

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// lifecycle says whether a host takes calls, and counts the activities that are under way.
// A host passes these steps:
//
//  1. Open makes it, and calls are taken.
//  2. Shutdown sets closing: new calls get ErrShutdown, those under way may end.
//  3. busy falls to 0, or the context of Shutdown ends. In the second case ctx is
//     cancelled, and the handlers and routines get shutdownGrace to return.
//  4. The store is closed, and end closes done.
//
// If the store fails, fail goes to step 4 at once: end sets closing and cancels ctx. The
// store is then closed by a later Shutdown.
type lifecycle struct {
	ctx      context.Context // ends when the host cancels everything it runs
	cancel   context.CancelCauseFunc
	done     chan struct{} // closed when the host has ended
	closed   chan struct{} // closed when Shutdown has ended
	closeErr error         // the error of Shutdown; set before closed is closed

	busy    atomic.Int64 // counts activities: oneCall for each call from outside, 1 for any other
	closing atomic.Bool  // no new call is taken
	shut    atomic.Bool  // Shutdown has been called

	mu    sync.Mutex
	cause error         // why the host ended; nil while it lives; guarded by mu
	ended bool          // done is closed; guarded by mu
	idle  chan struct{} // one slot; gets a signal when busy reaches 0 while closing
}

// init makes the channels and the context. Open calls it first.
func (l *lifecycle) init() {
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.done, l.closed = make(chan struct{}), make(chan struct{})
	l.idle = make(chan struct{}, 1)
}

// oneCall is the weight of a call from outside in lifecycle.busy. The count of calls and
// the count of all else share one number, so a call takes one atomic addition when it
// begins and one when it ends; two counters would take four.
const oneCall = 1 << 32

// begin counts an activity of the runtime that begins, for example a routine. It is never
// refused, because it belongs to a turn or an alarm that was let in. The caller calls leave
// when it has ended.
func (l *lifecycle) begin() { l.busy.Add(1) }

// enter counts an activity that begins, or refuses it with the errors of admit. If it
// returns nil, the caller calls leave when the activity has ended.
func (l *lifecycle) enter(exempt bool) error { return l.admit(1, exempt) }

// leave counts an activity that has ended.
func (l *lifecycle) leave() { l.release(1) }

// enterCall is enter for a request, which is a call from outside if it is not exempt.
func (l *lifecycle) enterCall(exempt bool) error { return l.admit(weight(exempt), exempt) }

// leaveCall is leave for a request. exempt is the same as in enterCall.
func (l *lifecycle) leaveCall(exempt bool) { l.release(weight(exempt)) }

// weight returns by how much a request raises lifecycle.busy.
func weight(exempt bool) int64 {
	if exempt {
		return 1
	}
	return oneCall
}

// calls returns how many calls from outside are under way.
func (l *lifecycle) calls() int64 { return l.busy.Load() / oneCall }

// running returns how many activities are under way, calls among them.
func (l *lifecycle) running() int64 {
	n := l.busy.Load()
	return n/oneCall + n%oneCall
}

// admit adds n to busy. While the host shuts down it takes n back and returns ErrShutdown,
// or the error of the store that ended the host, unless the activity is exempt. It adds
// before it looks at closing, so that Shutdown, which sets closing and then looks at busy,
// never misses an activity that was let in.
func (l *lifecycle) admit(n int64, exempt bool) error {
	l.busy.Add(n)
	if l.closing.Load() && !exempt {
		l.release(n)
		if err := l.err(); err != nil && !errors.Is(err, ErrShutdown) {
			return err
		}
		return ErrShutdown
	}
	return nil
}

// release takes n from busy, and signals idle if that was the last activity of a host that
// shuts down. The slot of idle may be full already; then one signal is enough.
func (l *lifecycle) release(n int64) {
	if l.busy.Add(-n) == 0 && l.closing.Load() {
		select {
		case l.idle <- struct{}{}:
		default:
		}
	}
}

// err returns why the host ended, or nil while it lives. It takes l.mu.
func (l *lifecycle) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// ending gives the cause of an end that has begun, unless there is one. It takes l.mu.
func (l *lifecycle) ending(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = cause
	}
}

// end ends the host for cause: no call is taken any more, ctx is cancelled and done is
// closed. It reports whether this call was the first to give a cause. It may be called
// more than once, from any goroutine, and takes l.mu.
func (l *lifecycle) end(cause error) bool {
	l.mu.Lock()
	first := l.cause == nil
	if first {
		l.cause = cause
	}
	done := !l.ended
	l.ended = true
	l.mu.Unlock()
	l.closing.Store(true)
	l.cancel(cause)
	if done {
		close(l.done)
	}
	return first
}

// fail ends the host after an error of its store (O13). Every goroutine that meets such an
// error calls it; the first one logs the error, and stops watches, alarms, suspects,
// permits and expiry.
func (h *Host) fail(err error) {
	if errors.Is(err, storage.ErrClosed) {
		return
	}
	if h.lifecycle.end(err) {
		h.options.Logger.Error("host ends: storage failed", "error", err)
		tapsOf(h).Stop(err)
		h.feedNews.stop(err)
		h.alarms.Stop()
		h.mail.later.Stop()
		h.flightLog.suspects.close()
		h.closePermits()
		h.suspension.close()
		h.expiry.stop()
	}
}

// Err returns the error that ended the host, or nil while it lives. After Shutdown it is
// ErrShutdown.
func (h *Host) Err() error { return h.lifecycle.err() }

// Done is closed when the host has ended, by Shutdown or by an error.
func (h *Host) Done() <-chan struct{} { return h.lifecycle.done }

// shutdownGrace is how long cancelled handlers and routines may take to return
// before the store is closed under them.
const shutdownGrace = 200 * time.Millisecond

// Shutdown ends the host in order. New calls are refused with ErrShutdown, alarms stop,
// and waits in State.Await end. Turns and routines under way may run on until ctx ends, and
// are cancelled then. So give ctx a deadline: without one, Shutdown waits as long as they
// run, for ever if one of them waits for its own context to end.
//
// The store is closed even if user code ignores the cancellation; the error then names the
// objects that were still running. Executions and alarms that were cut off are recovered
// at the next Open, which counts no attempt against them. A second call waits for the
// first, until its own ctx ends, and returns the same error.
func (h *Host) Shutdown(ctx context.Context) error {
	if !h.lifecycle.beginClosing() {
		if err := h.seams.Executor.Wait(ctx, h.lifecycle.closed); err != nil {
			return err
		}
		return h.lifecycle.closeErr
	}
	h.alarms.Stop()
	h.mail.later.Stop()
	h.flightLog.suspects.close()
	h.closePermits()
	h.suspension.close()
	h.expiry.stop()
	tapsOf(h).Stop(ErrShutdown)
	h.feedNews.stop(ErrShutdown)
	h.awaits.end()
	var late error
	if h.awaitIdle(ctx) != nil {
		h.lifecycle.cancel(ErrShutdown)
		h.cancelTurns()
		grace, cancel := h.seams.WithDeadline(context.Background(), h.seams.Clock.Now().Add(shutdownGrace), ErrTimeout)
		if h.awaitIdle(grace) != nil {
			late = fmt.Errorf("object: shutdown: still running: %s", strings.Join(h.running(), ", "))
		}
		cancel()
	}
	err := errors.Join(late, h.closeStore())
	h.lifecycle.end(ErrShutdown)
	h.lifecycle.closeErr = err
	close(h.lifecycle.closed)
	return err
}

// beginClosing refuses calls from now on, and reports whether this is the first call of
// Shutdown. After a failure of the store calls are refused already, so closing alone does
// not tell.
func (l *lifecycle) beginClosing() bool {
	l.closing.Store(true)
	return l.shut.CompareAndSwap(false, true)
}

// cutOff reports whether the host has cancelled everything that it runs.
func (l *lifecycle) cutOff() bool { return l.closing.Load() && l.ctx.Err() != nil }

// awaitIdle returns nil when no activity is under way any more, or the cause of ctx's end
// if that comes first. A signal of idle may be old, so it looks at busy after each one.
func (h *Host) awaitIdle(ctx context.Context) error {
	for h.lifecycle.busy.Load() > 0 {
		if err := h.seams.Executor.Wait(ctx, h.lifecycle.idle); err != nil {
			if h.lifecycle.busy.Load() == 0 {
				return nil
			}
			return err
		}
	}
	return nil
}

// closeStore closes the store. After an error of the store it abandons it, so that the next
// Open takes the end for a crash. Otherwise it first removes the rows of the flight log in
// one batch, because an end in order cuts off no alarm.
func (h *Host) closeStore() error {
	if err := h.store.Err(); err != nil {
		return errors.Join(err, h.store.Abandon())
	}
	h.lifecycle.ending(ErrShutdown) // also if the store gives up to wait for its log: an error is that of Shutdown from here on
	var b storage.Batch
	err := h.store.Metas(flightRow, func(name string, _ []byte) error {
		b.DeleteMeta(name)
		return nil
	})
	if err == nil {
		_, err = h.store.Commit(&b)
	}
	if errors.Is(err, ErrNoSpace) {
		err = nil // the next open drops these rows, and after an end in order they count for nothing
	}
	return errors.Join(err, h.store.Close())
}

// cancelTurns ends the instances that have a turn or a routine under way: their contexts end,
// and a commit that they make later is refused. It takes a.mu of one activation at a time.
func (h *Host) cancelTurns() {
	for a := range h.lru.all() {
		a.mu.Lock()
		state, busy := a.state, a.running || a.holds.Load() > 0
		a.mu.Unlock()
		if busy && state != nil {
			state.end(ErrShutdown)
		}
	}
}

// running returns the names of the objects that have a turn or a routine under way, for the
// error of Shutdown.
func (h *Host) running() []string {
	var names []string
	for a := range h.lru.all() {
		a.mu.Lock()
		busy := a.running || a.holds.Load() > 0
		a.mu.Unlock()
		if busy {
			names = append(names, a.object.ID.String())
		}
	}
	return names
}

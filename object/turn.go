package object

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// turn is the context that a handler gets, for one run of it. Each request has a new
// one, so that a context which user code keeps beyond its turn is harmless: its draft is
// nil and its phase is phaseOver. The rest of the turn is in the draft, which lies in the
// request.
//
// Context, state and draft are set by serve and cleared by end, on the goroutine that
// owns the object's turn. Goroutines of the handler may call Value, Done and Err at any
// time, so phase and joined are atomic.
type turn struct {
	context.Context        // the caller's
	state           *State // nil in a turn without an instance
	*draft                 // nil when the turn has ended

	phase atomic.Int32 // see phaseHolds
	depth uint8        // of nested BlockConcurrencyWhile; a constructor counts as one
	// called says that the turn has called another object. Guarded by waits.mu, because
	// goroutines of the handler may make calls.
	called bool

	joined atomic.Pointer[joinedContext] // nil until the first call of Done makes it
}

// joinedContext ends when the caller's context ends or the instance is gone. It takes 4
// allocations and 376 bytes, more than the rest of a turn, so it is made only for
// handlers that call Done, for example by a select on ctx.Done().
type joinedContext struct {
	context.Context
	cancel    context.CancelCauseFunc
	canceller canceller // of the instance
}

// turnKey is the key under which Value returns the turn itself.
type turnKey struct{}

// turnOf returns the turn behind ctx: ctx itself, or the turn from which ctx was derived
// by package context. It returns nil if there is none, for example for a context from
// outside. The turn may have ended.
func turnOf(ctx context.Context) *turn {
	if t, ok := ctx.(*turn); ok {
		return t
	}
	t, _ := ctx.Value(turnKey{}).(*turn)
	return t
}

// Value returns the turn itself for turnKey, and the caller's values for other keys. Once
// Done has made the joined context, that one answers, because package context asks Value
// for the parent to which it can attach a child without a goroutine.
func (t *turn) Value(key any) any {
	if key == (turnKey{}) {
		return t
	}
	if j := t.joined.Load(); j != nil {
		return j.Value(key)
	}
	return t.Context.Value(key)
}

// Done is closed when the caller's context ends or the instance is gone. Its first call
// makes the joined context. Two goroutines of the handler may both be first; then the
// compare-and-swap keeps one context, and the other is ended at once.
func (t *turn) Done() <-chan struct{} {
	if j := t.joined.Load(); j != nil {
		return j.Done()
	}
	j := join(t.Context, t.state)
	if !t.joined.CompareAndSwap(nil, j) { // another goroutine was quicker
		j.end()
	}
	return t.joined.Load().Done()
}

// join returns a context that ends with parent, and with the instance of state unless
// that is nil. The caller must call end on it, or else the State keeps its canceller as
// long as the instance lives.
func join(parent context.Context, state *State) *joinedContext {
	j := &joinedContext{}
	j.Context, j.cancel = context.WithCancelCause(parent)
	if state != nil {
		state.onEnd(&j.canceller, j.cancel)
	}
	return j
}

// end cancels the context and those derived from it, and takes its canceller out of the
// State. It takes the mutex of the State, so the caller must not hold that.
func (j *joinedContext) end() {
	j.canceller.forget()
	j.cancel(context.Canceled)
}

// Err returns why the context has ended, or nil while it lives. Without a joined context
// it looks at the caller's context and at the instance, and allocates nothing.
func (t *turn) Err() error {
	if j := t.joined.Load(); j != nil {
		return j.Err()
	}
	if err := t.Context.Err(); err != nil {
		return err
	}
	if t.state != nil && t.state.err() != nil {
		return context.Canceled
	}
	return nil
}

// serve runs a request as one turn, on the goroutine of its caller, which owns the
// object's turn (see activation). It sets the request's err and ticket, and reports
// whether the caller still owns the turn. It does not if the handler has returned while a
// goroutine of it was in Release, or if the object left memory during a Release.
//
// A turn passes these steps:
//
//  1. accept (activation.go) lets the caller's goroutine own the turn, if the object is
//     idle and in memory. Otherwise the request waits in the mailbox, and a goroutine of
//     the crew owns the turn.
//  2. serve joins request, turn and draft, and sets phaseHolds.
//  3. perform refuses the turn if the store is dead, the instance is gone or the host has
//     cancelled its calls. It then branches to a bare operation, an alarm or a call.
//  4. ready runs the constructor if the object has no instance, and commits the
//     constructor's writes.
//  5. handle runs the handler under protect, which turns a panic into an error.
//  6. returned checks that no goroutine of the handler is in Release or a transaction.
//  7. commit applies the batch (its own steps are listed in turn_commit.go), or rollBack
//     drops it.
//  8. end sets phaseOver, closes the iterators, and gives permits and batch back.
//  9. finish wakes the caller and yield hands the turn to the next request. A reply to the
//     outside then waits until the commit is durable (Host.outside); the next turn does
//     not wait for that.
func (a *activation) serve(r *Request) bool {
	if a.host.options.Observer != nil {
		a.observeTurn(r)
	}
	r.draft.act, r.draft.object = a, &a.object
	if r.turn == nil {
		r.turn = new(turn)
	}
	t := r.turn
	t.Context, t.state, t.draft = r.ctx, a.state, &r.draft
	if r.within > 0 {
		seams := &a.host.seams
		ctx, end := seams.WithDeadline(r.ctx, seams.Clock.Now().Add(r.within), ErrTimeout)
		defer end()
		t.Context = ctx
	}
	if t.phase.Load() != phaseHolds {
		t.phase.Store(phaseHolds)
	}
	complete := false
	defer func() {
		if !complete { // the handler ended its goroutine
			owns := t.end()
			r.err, r.ticket = &PanicError{ID: a.object.ID}, a.upTo(r)
			if a.host.options.Observer != nil {
				a.observeEnd(r)
			}
			r.finish(a.host)
			if owns {
				a.yield()
			}
		}
	}()
	r.err = a.perform(t, r)
	owns := t.end()
	r.ticket = a.upTo(r)
	if a.host.options.Observer != nil {
		a.observeEnd(r)
	}
	complete = true
	return owns
}

// upTo returns the ticket that the reply of a turn which has just ended depends on.
func (a *activation) upTo(r *Request) storage.Ticket {
	last := storage.Ticket(a.last.Load())
	if !r.gated {
		return last
	}
	return a.host.store.Seen(last)
}

// perform runs a turn from its constructor to its commit, counts it by its outcome, and
// returns its error. The caller owns the turn.
func (a *activation) perform(t *turn, r *Request) error {
	h := a.host
	if err := h.store.Err(); err != nil {
		return h.storageError(a.object.ID, err)
	}
	if r.state != nil && r.state != a.state {
		return named(a.object.ID, ErrReset)
	}
	if h.lifecycle.cutOff() { // nothing would cancel a call that begins now
		if _, ok := r.op.(callable); ok && r.message() == nil {
			return named(a.object.ID, ErrShutdown)
		}
	}
	var err error
	switch op := r.op.(type) {
	case bare:
		err = a.performBare(t, op)
	case *firing:
		err = a.performAlarm(t, r, op)
	case *delivery:
		if op.message.skips() {
			return named(a.object.ID, ErrShutdown)
		}
		if op.message.deferred() {
			return named(a.object.ID, ErrSuspended)
		}
		err = a.performMessage(t, r, op.message)
	default:
		if err = a.performCall(t, r); err != nil {
			a.logPanic(err, methodOf(r.op))
		}
	}
	a.hosted.counts.turn(err)
	return err
}

// performCall constructs the instance if there is none, and runs the operation on it.
func (a *activation) performCall(t *turn, r *Request) error {
	if err := a.ready(t); err != nil {
		return err
	}
	return a.handle(t, r)
}

// performAlarm runs a turn that handles an alarm. If the handler fails, a commit of its
// own stores the next attempt or the dead letter, because everything that the handler
// wrote is dropped.
func (a *activation) performAlarm(t *turn, r *Request, f *firing) error {
	if s := a.host.suspension; s != nil && s.off.Load() {
		return nil // it is not settled, so it fires again, and waits for the log then
	}
	if stopped, err := f.stopped(t); stopped || err != nil {
		return a.host.storageError(a.object.ID, err)
	}
	t.state = a.state
	err := a.performCall(t, r)
	if err != nil {
		return f.failed(t, err)
	}
	f.settled = f.settled || f.row != nil
	return nil
}

// bare is an operation of the runtime that needs no instance and runs no user code, for
// example the deletion of an object by Host.Delete.
type bare func(t *turn) error

// run makes bare an operation. It does nothing, because perform calls performBare instead.
func (bare) run(context.Context, *activation) error { return nil }

// performBare reads where the object is, runs op and commits its writes. The turn's
// state is nil meanwhile, so that the turn counts as one without an instance.
func (a *activation) performBare(t *turn, op bare) error {
	if err := a.locate(); err != nil {
		return a.host.storageError(a.object.ID, err)
	}
	t.state = nil
	err := op(t)
	if err == nil {
		err = t.commit(false)
	}
	if err != nil {
		t.rollBack(err)
	}
	return err
}

// handle runs the operation under protect, and then commits its writes, or drops them if
// the operation failed. A request with an idempotency key goes through once, which
// returns the stored answer if there is one.
func (a *activation) handle(t *turn, r *Request) error {
	h := a.host
	if h.seams.Probe != nil {
		h.seams.At("handler/enter", a.object.ID.String())
		t.tellBegan(r)
	}
	err := t.protect(&a.object.ID, func() error {
		if r.key != "" {
			return a.once(t, r)
		}
		return r.op.run(t, a)
	})
	if lent := t.returned(); err == nil {
		err = lent
	}
	if err == nil {
		err = t.commit(true)
	}
	if err != nil {
		r.failing()
		t.rollBack(err)
	}
	return err
}

// protect runs user code of the object id in the turn and turns a panic into a
// *PanicError. Code that ends its goroutine (runtime.Goexit) never returns to handle, so
// the turn is rolled back here.
func (t *turn) protect(id *storage.ID, fn func() error) error {
	return guard(id, fn, func(err error) {
		if t.grasp() {
			t.rollBack(err)
			t.letGo()
		}
	})
}

// end ends the turn: it sets phaseOver, closes the iterators and the joined context, and
// gives back unused permits and the batch. It reports whether the goroutine still owns
// the object's turn. Only an owner may touch the activation, so the reset after a purge
// and forgetMarked depend on it. No mutex is held.
func (t *turn) end() (owns bool) {
	owns = t.over()
	if t.act.host.seams.Probe != nil {
		t.tellEnded()
	}
	for _, it := range t.iters {
		it.Close()
	}
	if j := t.joined.Load(); j != nil {
		j.end()
	}
	if owns && t.purged {
		t.act.reset(errDeleted)
	}
	if owns {
		t.act.forgetMarked()
	}
	t.giveUnused()
	t.recycle()
	t.act.used.Store(t.act.host.lru.tick.Load())
	t.draft = nil
	return owns
}

// methodOf returns the name of the method that an operation calls; empty if it calls none.
func methodOf(op operation) string {
	if m, ok := op.(interface{ methodName() string }); ok {
		return m.methodName()
	}
	return ""
}

// logPanic logs a call whose handler or constructor panicked. It leaves out the panic of
// another object that this handler has called and whose error it returns, because that
// object's turn has logged it.
func (a *activation) logPanic(err error, method string) {
	var p *PanicError
	if errors.As(err, &p) && p.ID == a.object.ID {
		a.log().Error("handler panicked", telling(err, "method", method)...)
	}
}

// log returns the host's logger with the class and the name of the object. It allocates,
// so it is called only for lines that are written.
func (a *activation) log() *slog.Logger {
	return a.host.options.Logger.With("class", a.object.ID.Class, "object", a.object.ID.Name)
}

// The phases of a turn. Goroutines that the handler began may look at the phase, and may
// be inside Release, a block or a transaction when the handler returns. So the phase
// changes by atomic operations and not under a mutex, and a goroutine that has set
// phaseBusy keeps the turn from ending.
//
//	phaseQueued → phaseHolds ⇄ phaseBusy ⇄ phaseLent → phaseLost
//
// A turn passes them in this order:
//
//  1. phaseQueued, set by link, while the turn of another object waits for this one. A
//     request that no turn waits for skips this phase.
//  2. phaseHolds, set by serve: the handler runs, and no other turn of the object does.
//  3. phaseBusy, set by grasp, for the moment in which a goroutine of the handler changes
//     the draft: Release before it lends the turn out, the end of a transaction, the
//     failure of a block.
//  4. phaseLent, set by Release: other turns of the object run. Release goes back through
//     phaseBusy to phaseHolds when it has the turn again.
//  5. phaseLost, if Release cannot have the turn again: the object has left memory, or the
//     handler has returned while a goroutine of it was in Release.
//  6. phaseOver, set by end. It follows any phase but phaseBusy, for which over waits.
const (
	phaseHolds  int32 = iota // the turn holds its object; the zero value
	phaseQueued              // the turn has yet to begin
	phaseLent                // Release has lent the turn out
	phaseBusy                // the turn holds its object, and a goroutine changes the draft
	phaseLost                // the turn was lent out, and its object has gone on without it
	phaseOver                // the turn has ended, and its context is of no use any more
)

// holds reports whether the turn holds its object: it is under way and not lent out. Any
// goroutine may call it; the answer may be out of date at once unless the caller has
// grasped the turn or owns it.
func (t *turn) holds() bool {
	p := t.phase.Load()
	return p == phaseHolds || p == phaseBusy
}

// grasp keeps the turn from ending until letGo, like a lock: a second goroutine that
// grasps the turn spins until then. It reports false, and nothing is to be let go, if the
// turn does not hold its object. Callers keep it for a few instructions and never while
// they wait.
func (t *turn) grasp() bool { return t.pass(phaseHolds, phaseBusy) }

// letGo undoes grasp. The caller has grasped the turn.
func (t *turn) letGo() { t.phase.Store(phaseHolds) }

// pass moves the turn from one phase to another. While another goroutine has grasped the
// turn it spins, because a grasp lasts only a few instructions. It reports false, and
// changes nothing, if the turn is in a third phase.
func (t *turn) pass(from, to int32) bool {
	for !t.phase.CompareAndSwap(from, to) {
		if p := t.phase.Load(); p != phaseBusy && p != from {
			return false
		}
		runtime.Gosched()
	}
	return true
}

// returned is called when the handler has returned, and reports a goroutine of it that is
// still in Release or in a transaction. The turn must not commit then: after Release other
// turns have changed the object, and of a transaction only a part would be committed.
func (t *turn) returned() error {
	const text = "%s: %w: the handler returned while a goroutine of it was in %s: wait for the goroutine first"
	switch {
	case t.phase.Load() != phaseHolds && t.pass(phaseLent, phaseLost):
		return fmt.Errorf(text, t.act.object.ID, ErrNoTurn, "Release or Await")
	case t.txs > 0:
		return fmt.Errorf(text, t.act.object.ID, ErrNoTurn, "Transaction")
	}
	return nil
}

// over sets phaseOver, and reports whether the turn held its object until now. It spins
// while a goroutine of the handler has grasped the turn.
func (t *turn) over() (held bool) {
	for {
		switch p := t.phase.Load(); {
		case p == phaseBusy:
			runtime.Gosched()
		case t.phase.CompareAndSwap(p, phaseOver):
			return p == phaseHolds
		}
	}
}

// tellBegan tells a probe that follows turns of one with a handler that is about to run. Only
// simulations have such a probe. The callers of this method and of the next two first look
// whether there is any probe, so that production pays for one branch.
func (t *turn) tellBegan(r *Request) {
	p, ok := t.act.host.seams.Probe.(seam.Turns)
	if !ok {
		return
	}
	told := seam.Turn{ID: t, Object: r.id.String(), Repeatable: r.repeatable || r.key != ""}
	if r.what != nil {
		told.Method = *r.what
	}
	if caller, _ := t.act.host.turnBehind(r.ctx); caller != nil {
		told.Caller = caller
	}
	p.TurnBegan(told)
}

// tellCommitted tells the probe that the turn has committed rows. The probe knows nothing of
// a turn that runs a constructor still, or stores the failure of a handler, and ignores it.
func (t *turn) tellCommitted() {
	if p, ok := t.act.host.seams.Probe.(seam.Turns); ok {
		p.TurnCommitted(t)
	}
}

// tellEnded tells the probe that the handler has ended.
func (t *turn) tellEnded() {
	if p, ok := t.act.host.seams.Probe.(seam.Turns); ok {
		p.TurnEnded(t)
	}
}

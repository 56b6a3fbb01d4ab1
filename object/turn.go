package object

import (
	"context"
	"errors"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// turn is one handler run as its user knows it: a context. It is made anew for
// each request and never used again, so that a context kept beyond its turn is
// harmless. All else of the turn is in its draft, which is used again.
type turn struct {
	context.Context        // the caller's
	life            *State // nil in a turn without an instance
	*draft                 // nil when the turn has ended

	phase atomic.Int32 // see phaseHolds
	depth uint8        // of BlockConcurrencyWhile

	joined atomic.Pointer[joinedContext] // made by the first call of Done
}

// draft is what a turn works on: what it has written so far, and what goes with it.
type draft struct {
	act *activation
	at  time.Time // when the turn's last commit was made; zero: it has made none

	purged bool  // the object has ended with a commit of this turn
	txs    int32 // transactions under way

	permits int  // taken for works that have not started
	permit  bool // one of them is for the next work

	object  *storage.Object // as this turn will leave it: the activation's, or changed
	changed storage.Object

	batch  *storage.Batch // nil until the first write
	writes writes
	after  *afterwards     // the newest thing to do once the writes are committed
	firing *alarm.Row      // the alarm that this turn handles
	again  *alarm.Row      // the alarm that the handler set before it failed
	iters  []*storage.Iter // to close at the end
}

// joinedContext ends when the caller's context ends or the activation does.
type joinedContext struct {
	context.Context
	cancel context.CancelCauseFunc
	ending ending // that of the activation
}

// writes is what a turn has written beside the records in its batch. It is a
// value, so that a transaction can keep and restore it.
type writes struct {
	alarm    *alarm.Row // the alarm it sets; nil: it clears it
	alarmSet bool       // the turn sets or clears the alarm
	adds     bool       // it stores a key or a mark
	removes  bool       // it removes a key, a mark or the alarm
	open     openChange // of the open-execution mark
	purge    bool       // the object ends with this turn
	events   bool
}

type openChange uint8

const (
	openSame openChange = iota
	openSet
	openCleared
)

type turnKey struct{}

// turnOf returns the turn whose context ctx is or comes from, or nil.
func turnOf(ctx context.Context) *turn {
	if t, ok := ctx.(*turn); ok {
		return t
	}
	t, _ := ctx.Value(turnKey{}).(*turn)
	return t
}

// Value returns the turn itself for its key.
func (t *turn) Value(key any) any {
	if key == (turnKey{}) {
		return t
	}
	if j := t.joined.Load(); j != nil {
		return j.Value(key)
	}
	return t.Context.Value(key)
}

// Done is closed when the caller's context ends or the activation does. The
// joint context costs memory, so it is made only when it is asked for.
func (t *turn) Done() <-chan struct{} {
	if j := t.joined.Load(); j != nil {
		return j.Done()
	}
	j := join(t.Context, t.life)
	if !t.joined.CompareAndSwap(nil, j) { // another was quicker
		j.end()
	}
	return t.joined.Load().Done()
}

// join returns a context that ends when parent does, or the activation of life if
// that is not nil.
func join(parent context.Context, life *State) *joinedContext {
	j := &joinedContext{}
	j.Context, j.cancel = context.WithCancelCause(parent)
	if life != nil {
		life.onEnd(&j.ending, j.cancel)
	}
	return j
}

// end cancels what has come from the context.
func (j *joinedContext) end() {
	j.ending.forget()
	j.cancel(context.Canceled)
}

// Err tells why Done is closed, or nil.
func (t *turn) Err() error {
	if j := t.joined.Load(); j != nil {
		return j.Err()
	}
	if err := t.Context.Err(); err != nil {
		return err
	}
	if t.life != nil && t.life.err() != nil {
		return context.Canceled
	}
	return nil
}

// serve runs a request in the turn that the caller owns, and reports whether the
// caller owns it still. The request's err and ticket are set.
func (a *activation) serve(r *Request) bool {
	r.draft.act, r.draft.object = a, &a.object
	if r.turn == nil {
		r.turn = new(turn)
	}
	t := r.turn
	t.Context, t.life, t.draft = r.ctx, a.life, &r.draft
	if t.phase.Load() != phaseHolds {
		t.phase.Store(phaseHolds)
	}
	complete := false
	defer func() {
		if !complete { // the handler ended its goroutine
			owns := t.end()
			r.err, r.ticket = &PanicError{ID: a.id}, storage.Ticket(a.last.Load())
			r.finish(a.hosted.host)
			if owns {
				a.yield()
			}
		}
	}()
	a.current = t
	r.err = a.perform(t, r)
	owns := t.end()
	r.ticket = storage.Ticket(a.last.Load())
	complete = true
	return owns
}

// perform is a turn from its constructor to its commit.
func (a *activation) perform(t *turn, r *Request) error {
	h := a.hosted.host
	if err := h.store.Err(); err != nil {
		return h.storageError(a.id, err)
	}
	if r.life != nil && r.life != a.life {
		return named(a.id, ErrReset)
	}
	if h.life.cutOff() { // nothing would cancel a call that begins now
		if _, ok := r.op.(callable); ok {
			return named(a.id, ErrShutdown)
		}
	}
	var err error
	switch op := r.op.(type) {
	case bare:
		err = a.performBare(t, op)
	case *firing:
		err = a.performAlarm(t, r, op)
	default:
		if err = a.performCall(t, r); err != nil {
			a.logPanic(err, methodOf(r.op))
		}
	}
	a.hosted.counts.turn(err)
	return err
}

func (a *activation) performCall(t *turn, r *Request) error {
	if err := a.ready(t); err != nil {
		return err
	}
	return a.handle(t, r)
}

// performAlarm is a turn that handles an alarm; when it has failed, what follows
// is stored in a commit of its own.
func (a *activation) performAlarm(t *turn, r *Request, f *firing) error {
	if stopped, err := f.stopped(t); stopped || err != nil {
		return a.hosted.host.storageError(a.id, err)
	}
	t.life = a.life
	err := a.performCall(t, r)
	if err != nil {
		return f.failed(t, err)
	}
	f.settled = f.settled || f.row != nil
	return nil
}

// bare is an operation of the runtime that needs no instance: no user code runs.
type bare func(t *turn) error

func (bare) run(context.Context, *activation) error { return nil }

func (a *activation) performBare(t *turn, op bare) error {
	if err := a.locate(); err != nil {
		return a.hosted.host.storageError(a.id, err)
	}
	t.life = nil
	err := op(t)
	if err == nil {
		err = t.commit(false)
	}
	if err != nil {
		t.drop(err)
	}
	return err
}

// handle runs the operation and commits what it wrote, or drops it.
func (a *activation) handle(t *turn, r *Request) error {
	h := a.hosted.host
	if h.seams.Probe != nil {
		h.seams.At("handler/enter", a.id.String())
	}
	err := t.protect(func() error {
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
		t.drop(err)
	}
	return err
}

// protect runs user code in the turn and turns a panic into an error.
func (t *turn) protect(fn func() error) error {
	return guard(&t.act.id, fn, func(err error) {
		if t.grasp() {
			t.drop(err)
			t.letGo()
		}
	})
}

// guard runs user code and turns a panic into an error. If the code ends its
// goroutine nobody will see the error, so it is given to exit.
func guard(id *storage.ID, fn func() error, exit func(error)) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		if _, ok := v.(seam.Killed); ok {
			panic(v)
		}
		err = &PanicError{ID: *id, Value: v, Stack: debug.Stack()}
		if v == nil { // runtime.Goexit
			exit(err)
		}
	}()
	err = fn()
	returned = true
	return err
}

// end closes what the turn has open, and reports whether its task owns the object's
// turn still.
func (t *turn) end() (owns bool) {
	owns = t.over()
	if owns && t.act.current == t {
		t.act.current = nil
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
	t.act.used.Store(t.act.hosted.host.lru.tick.Load())
	t.draft = nil
	return owns
}

// recycle gives the batch back.
func (t *turn) recycle() {
	if t.batch != nil {
		t.batch.Reset()
		t.act.hosted.host.batches.Put(t.batch)
		t.batch = nil
	}
}

// write returns the turn's batch for a change.
func (t *turn) write() *storage.Batch {
	if t.batch == nil {
		t.batch = t.act.hosted.host.batches.Get().(*storage.Batch)
		t.batch.For(t.act.id)
	}
	if t.object.Number == 0 {
		t.change().Number = t.act.hosted.host.store.NewNumber()
	}
	return t.batch
}

// change returns the turn's object for a change, which the activation will see when
// it is committed.
func (t *turn) change() *storage.Object {
	if t.object != &t.changed {
		t.changed = *t.object
		t.object = &t.changed
	}
	return t.object
}

// dirty reports whether the turn has anything to commit.
func (t *turn) dirty() bool {
	return t.writes.alarmSet || t.writes.purge || t.batch != nil && !t.batch.Empty()
}

// drop forgets what the turn wrote and has not committed. If it wrote anything,
// or panicked, memory and storage may differ, so the activation is reset.
func (t *turn) drop(err error) {
	wrote := t.dirty()
	if t.firing != nil {
		t.again = t.writes.alarm
	}
	t.clear()
	if wrote || errors.Is(err, ErrPanic) {
		t.reset(err)
	}
}

// reset ends the turn's own activation. If that has happened while the turn was
// lent out, another may be in its place, which is left alone.
func (t *turn) reset(err error) {
	if t.holds() && t.life != nil && t.life == t.act.life {
		t.act.reset(err)
	}
}

func (t *turn) clear() {
	if t.batch != nil {
		t.batch.Reset()
		t.batch.For(t.act.id)
	}
	t.writes, t.after = writes{}, nil
	t.forgetMarked()
	if t.holds() {
		t.object = &t.act.object
	}
}

// storageError names the object in an error of the store, and tells a store that
// was closed by Shutdown from one that failed.
func (h *Host) storageError(id storage.ID, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrClosed):
		return named(id, ErrShutdown)
	case errors.Is(err, ErrStorage):
		h.fail(err)
	}
	return named(id, err)
}

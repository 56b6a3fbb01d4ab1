package object

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// Caller makes calls: a *Host for calls from outside, the *State of an object for calls
// from its handlers, or a simulation that wraps one of them.
type Caller interface {
	// Invoke runs the request and returns its error, if any.
	Invoke(ctx context.Context, r *Request) error
}

// CallOption changes one call. Idempotent, Unconfirmed, Detached, Inline, HandlerTimeout, Repeatable and After
// return one.
type CallOption struct {
	key         string
	ttl         time.Duration
	delay       time.Duration
	within      time.Duration
	unconfirmed bool
	detached    bool
	repeatable  bool
	after       bool
	leave       func(error)
}

// Idempotent gives the call a key. The first answer under the key is stored in
// the batch of the turn that gave it, and returned to every call with the same
// key and method for ttl (default: a day) without running the handler again. Calls with the key
// that arrive while the first runs wait for it. An error is no answer.
func Idempotent(key string, ttl time.Duration) CallOption { return CallOption{key: key, ttl: ttl} }

// Unconfirmed lets the reply out before the turn's commit is durable. The newest
// of such commits may be lost when the process or the power dies, but none is torn, and
// none survives without all commits before it. A later commit that is confirmed makes
// them durable, and the host does so within about a second. Over a replicated log such a commit may be lost without a crash,
// and the reply may be older than a commit of the process that has taken the log over.
func Unconfirmed() CallOption { return CallOption{unconfirmed: true} }

// Detached lets the caller leave when its context ends, and the handler go on: the handler gets
// the values of that context, and neither its deadline nor its end. A call that still waits for its turn
// then never runs. One that runs returns ErrUnknown, because the turn may commit or not; with
// Idempotent the same call can be sent again. Without Detached a caller that finds the object
// idle runs the handler on its own goroutine, so it cannot leave before the handler returns.
//
// The handler's context still ends with the instance, and with the context of Shutdown. Once
// the handler has returned, the reply waits for the disk as usual, whatever the caller's
// context. Detached costs a handover to another goroutine, unless Inline is given too. In a call from a turn it has no
// effect, because that turn must not go on without its answer; neither has it in a message.
func Detached() CallOption { return CallOption{detached: true} }

// Inline lets a call with Detached run its handler on the caller's goroutine if the object is idle and in memory, because
// a handover to another goroutine takes longer than a short handler. Then the caller cannot leave. Instead leave is called,
// at most once, with the error of a caller that leaves:
//
//   - ErrUnknown, when the deadline of the caller's context passes while the handler runs. leave has another goroutine, and the
//     call returns when both have ended, with the outcome of the handler. The end of the context before its deadline does not call leave.
//   - ErrPanic, if the handler ends its goroutine by runtime.Goexit, because that is the caller's too.
//
// A server, for example, answers its client in leave. In all other cases the call is as with Detached alone, and leave is not
// called. leave must not panic and must not wait for the call. A nil leave is as no Inline; without Detached it has no effect.
func Inline(leave func(err error)) CallOption { return CallOption{leave: leave} }

// HandlerTimeout ends the handler's context d after its turn has begun, by the clock of the host, also in a call with
// Detached. The time of the constructor counts, and that of the wait for the turn does not. The
// context's cause is then ErrTimeout; a handler that does not look at its context goes on, and may commit. Zero or less
// is no limit. It has no effect in a message.
func HandlerTimeout(d time.Duration) CallOption { return CallOption{within: d} }

// Repeatable says that a call of another object does no harm if the turn of its caller is
// lost after it, or repeated; for example, it adds a name to a set. It changes nothing but
// what harness.NoCallBeforeCommit finds.
func Repeatable() CallOption { return CallOption{repeatable: true} }

// After delays a message by d, counted by the wall clock from the Send on: it is handled when
// the clock has reached that time, and never before, also after a restart or when the clock was
// set back. Zero or less is no delay. At most 100 years are allowed, else Send returns
// ErrBadDelay. A delayed message is not ordered with others, and holds up none of them. It
// cannot be taken back; a receiver that may not want it any more looks at its own state then.
//
//	err := remind.Send(ctx, st, "bob", note, object.After(24*time.Hour))
//
// A call that is not sent is refused with ErrDelayedCall. See also State.Outbox and
// State.SetAlarm.
func After(d time.Duration) CallOption { return CallOption{after: true, delay: d} }

// maxDelay is a hundred years with their leap days.
const maxDelay = 36525 * 24 * time.Hour

// dueAfter returns the time of a message that is sent now with a delay.
func dueAfter(now time.Time, delay time.Duration) (due int64, err error) {
	at := now.Round(0).Add(delay)
	if delay > maxDelay || at.Unix() < 0 || at.After(time.Unix(0, math.MaxInt64)) {
		return 0, fmt.Errorf("%w: %v from %v", ErrBadDelay, delay, now.UTC())
	}
	return max(alarm.Nanos(at), 1), nil
}

// operation is the part of a request that runs in its turn: a method, an alarm handler,
// or a func of the runtime. run is called by the owner of the turn.
type operation interface {
	run(ctx context.Context, a *activation) error
}

// callable is an operation that can be called by name and answered from a store: an
// invocation of a method.
type callable interface {
	operation
	request() *Request
	methodName() string
	answerSent() bool // sets the answer of a call that was sent; false: it has none
	encodeArg(c Codec) ([]byte, error)
	decodeArg(c Codec, b []byte) error
	encodeResult(c Codec) ([]byte, error)
	decodeResult(c Codec, b []byte) error
	recycle() // keeps the memory for another call; it is for a call that has returned without an error
}

// methodName is part of the key under which an answer is stored.
func (in *invocation) methodName() string { return in.method.name }

// request is the request of a call by name, for CallBytes.
func (in *invocation) request() *Request { return &in.call }

// encodeArg returns the argument in the host's codec.
func (in *invocation) encodeArg(c Codec) ([]byte, error) {
	return c.Encode(in.method.part(in, argValue))
}

// decodeArg sets the argument from bytes in the host's codec.
func (in *invocation) decodeArg(c Codec, b []byte) error { return decodeArg(c, b, in.arg) }

// encodeResult returns the answer in the host's codec.
func (in *invocation) encodeResult(c Codec) ([]byte, error) {
	return c.Encode(in.method.part(in, answerValue))
}

// decodeResult sets the answer from a stored one.
func (in *invocation) decodeResult(c Codec, b []byte) error { return c.Decode(b, in.answer) }

// decodeArg sets the argument to which arg points from bytes. A panic of the type's own decoder is an error, because the
// bytes may come from anywhere.
func decodeArg(c Codec, b []byte, arg any) error {
	if len(b) == 0 && reflect.TypeOf(arg).Elem().Kind() == reflect.Struct {
		return nil // no bytes stand for the zero struct
	}
	return seam.Guard(func() error { return c.Decode(b, arg) }, func(p *seam.PanicError) error { return p })
}

// Request is one call on its way to an object and back. It is made by Method.Call;
// a Caller passes it on, once, and must not use it after that.
//
// One goroutine at a time uses its fields: the caller, until it has handed the request to
// a mailbox; then the owner of the turn; then the caller again, when it has received from
// done. progress decides between the two if the caller wants to leave earlier.
type Request struct {
	ctx   context.Context // the caller's
	id    storage.ID
	op    operation
	key   string        // idempotency key; empty: none
	ttl   time.Duration // of the stored answer
	print uint64        // the fingerprint of an argument that came as bytes with a key; 0: none
	delay time.Duration // see After
	// within is how long the handler's context lasts; see HandlerTimeout.
	within time.Duration
	leave  func(error) // see Inline; nil: a detached call does not run on the caller's goroutine
	state  *State      // of the instance it is bound to; nil: any
	// what names the user code that runs, for logs and errors: a method, for example, or
	// the alarm handler. Nil if none runs.
	what *string

	sent        bool // it has been passed on, so a second Invoke is refused
	after       bool // it has the option After, so only a message can be made of it
	repeatable  bool // see Repeatable; only simulations read it
	unconfirmed bool // the reply does not wait for the disk
	detached    bool // see Detached
	exempt      bool // from the mailbox's limits and from shutdown: alarms, work
	gated       bool // the reply waits until all that it depends on is durable

	// left is true if the caller has gone while the handler ran. It must not look at the
	// fields that the turn sets then. Set by the caller.
	left bool

	// Set by the mailbox. next and queuedAt are guarded by activation.mu.
	progress atomic.Int32 // waiting, started, and so on, see below
	next     *Request     // in the queue
	queuedAt time.Time
	done     chan struct{} // one slot; nil if the caller runs the turn itself

	// Set by the turn, and read by the caller after it has received from done.
	turn     *turn // nil until it begins, if the maker of the request gave none
	draft    draft
	err      error
	ticket   storage.Ticket   // the newest commit that the reply depends on
	follower storage.Follower // of a gated reply, if its caller waits for done
}

// The progress of a request in a mailbox:
//
//	waiting → started → replying
//	   ↓         ↓
//	abandoned departed
//
// Each step is an atomic compare-and-swap, because the caller and the owner of the turn
// may want to make different steps at the same moment. refuseWaiting puts a started
// request, which has not run, back to waiting.
const (
	waiting   int32 = iota // it is in the queue
	started                // the turn has taken it out of the queue
	replying               // its turn has ended or has failed, and the reply is on its way
	abandoned              // its caller has gone while it waited; it never runs
	departed               // its caller has gone while the handler ran; Shutdown waits for the end of its turn
)

// init sets the object, the operation and the options of a new request.
func (r *Request) init(id storage.ID, op operation, opts []CallOption) {
	r.id, r.op = id, op
	for _, o := range opts {
		if o.key != "" {
			r.key, r.ttl = o.key, o.ttl
		}
		r.unconfirmed = r.unconfirmed || o.unconfirmed
		r.detached = r.detached || o.detached
		r.repeatable = r.repeatable || o.repeatable
		r.within = max(r.within, o.within)
		if o.leave != nil {
			r.leave = o.leave
		}
		if o.after {
			r.after, r.delay = true, o.delay
		}
	}
}

// ID names the object that is called.
func (r *Request) ID() storage.ID { return r.id }

// funcOp is an operation of the runtime itself.
type funcOp func(ctx context.Context, a *activation) error

func (f funcOp) run(ctx context.Context, a *activation) error { return f(ctx, a) }

// unconfirmedDelay bounds how long an unconfirmed commit stays without a sync
// when no other call needs one.
const unconfirmedDelay = time.Second

// unconfirmedSync makes unconfirmed commits durable a little later. planned is true while
// a timer is set, so that any number of such commits in a second share one sync.
type unconfirmedSync struct{ planned atomic.Bool }

// plan sets the timer for a sync unless it is set. Any goroutine may call it. planned
// becomes false before the sync begins, so that a commit which comes during the sync
// plans another.
func (l *unconfirmedSync) plan(h *Host) {
	if !l.planned.CompareAndSwap(false, true) {
		return
	}
	h.seams.Clock.AfterFunc(unconfirmedDelay, func() {
		l.planned.Store(false)
		if h.lifecycle.enter(false) != nil {
			return // Shutdown makes everything durable
		}
		defer h.lifecycle.leave()
		_ = h.storageError(storage.ID{}, h.store.WaitDurable(h.store.Applied()))
	})
}

// Invoke runs a request. Users call Method.Call, which calls Invoke. There are three ways,
// by the context:
//
//   - ctx comes from a turn of this host that holds its object: the call is made by that
//     object, and its reply passes at once (callFrom).
//   - ctx comes from a turn that has lent its object out: the reply waits for the disk, and
//     the call is in the graph of waits, so that a circle is ErrDeadlock.
//   - Otherwise the call comes from outside, and its reply waits for the disk.
func (h *Host) Invoke(ctx context.Context, r *Request) error {
	if h.options.Observer != nil {
		return h.invokeObserved(ctx, r)
	}
	return h.invoke(ctx, r)
}

// invoke is Invoke without an Observer.
func (h *Host) invoke(ctx context.Context, r *Request) error {
	c := h.hosted[r.id.Class]
	if c == nil {
		return named(r.id, ErrUnknownClass)
	}
	if r.sent {
		return fmt.Errorf("%s: object: a Caller passed on a request twice; make another call", r.id)
	}
	if r.after {
		return named(r.id, ErrDelayedCall)
	}
	r.sent = true
	t, a := h.turnBehind(ctx)
	if r.detached = r.detached && t == nil; !r.detached {
		r.leave = nil
	}
	if t != nil && t.holds() {
		return h.callFrom(ctx, t, a, c, r)
	}
	if err := h.lifecycle.enterCall(r.exempt); err != nil {
		return named(r.id, err)
	}
	defer h.lifecycle.leaveCall(r.exempt)
	if t == nil {
		return h.outside(ctx, c, r)
	}
	w, err := h.link(t, a, r)
	if err != nil {
		return err
	}
	defer h.unlink(w)
	return h.outside(ctx, c, r)
}

// outside runs a request and lets its reply out when all that it depends on is
// durable (O7). An error of the handler waits too, because its text may tell something
// that the handler has read.
func (h *Host) outside(ctx context.Context, c *hosted, r *Request) error {
	r.gated = !r.unconfirmed
	err := c.deliver(ctx, r)
	if r.left {
		return err
	}
	return h.letOut(ctx, r, err)
}

// letOut waits until the reply of a request may go out, whose turn has ended with err.
func (h *Host) letOut(ctx context.Context, r *Request, err error) error {
	if r.unconfirmed {
		h.unconfirmed.plan(h)
		if !h.suspension.stale() {
			return err
		}
		r.ticket = h.store.Seen(r.ticket)
	}
	if e := h.hold(ctx, r); e != nil {
		return h.unheld(r, e)
	}
	if e := h.store.Err(); e != nil && err == nil {
		return h.unheld(r, e)
	}
	if h.seams.Probe != nil {
		h.seams.At("ack/before", r.id.String())
	}
	return err
}

// unheld returns the error of a call after the store failed while its reply waited. A
// call that has committed nothing gets the error with which the host ends. A call that
// has committed gets the error of the store, because its outcome is not known. Over a log it is ErrUnknown
// too, also if another object has committed for the call, because the next owner of the log goes on.
func (h *Host) unheld(r *Request, err error) error {
	committed := !r.draft.at.IsZero()
	switch {
	case h.store.OverLog() && (committed || h.calledOthers(r)):
		return unknown(r.id, err)
	case !committed:
		return h.storageError(r.id, err)
	}
	return named(r.id, err)
}

// calledOthers reports whether the turn of a request has called another object.
func (h *Host) calledOthers(r *Request) bool { return r.turn != nil && h.waits.called(r.turn) }

// hold waits until all that a reply depends on is durable, also commits of other turns
// that the turn has read. It returns at once if that is durable already. The goroutine of
// the caller runs it, so the next turn of the object does not wait. A follower that the
// store has enrolled must wait, because it may be its place to sync the log for others. Over a replicated log that does not
// answer, hold ends with storage.ErrUnconfirmed.
func (h *Host) hold(ctx context.Context, r *Request) error {
	if !r.follower.Enrolled() && h.store.Durable(r.ticket) {
		return nil
	}
	began := r.draft.at
	if began.IsZero() { // it waits for commits of other turns
		began = h.seams.Steady()
	}
	if err := h.store.WaitFollowed(ctx, &r.follower, r.ticket); err != nil {
		return err
	}
	h.metrics.gate.Observe(h.seams.Steady().Sub(began).Seconds())
	return nil
}

// CallBytes calls a method by name with an argument that the host's codec has encoded,
// and returns the encoded answer. A server uses it for callers in other processes. An
// empty arg stands for the zero value if the argument is a struct. It returns the errors
// of Method.Call, ErrUnknownMethod, ErrInternalMethod for a method of a job type, for example
// terminate, ErrBadArgument, and an error of the codec for the answer. Untouched tells of an
// error whether the call has left anything behind. Any goroutine may call it.
//
// With Idempotent it returns ErrKeyReused if the stored answer under the key is of a CallBytes with
// another argument. JSON is compared by its values, and not by the order of keys or the spaces.
func (h *Host) CallBytes(ctx context.Context, class, name, method string, arg []byte, opts ...CallOption) ([]byte, error) {
	c := h.hosted[class]
	if c != nil && c.options.Internal && c.methods[method] != nil {
		return nil, &untouched{fmt.Errorf("%s: %w: %q", storage.ID{Class: class, Name: name}, ErrInternalMethod, method)}
	}
	return h.callBytes(ctx, c, storage.ID{Class: class, Name: name}, method, arg, opts)
}

// callBytes is CallBytes for any method of a class, which is nil if the host does not have it.
func (h *Host) callBytes(ctx context.Context, c *hosted, id storage.ID, method string, arg []byte, opts []CallOption) ([]byte, error) {
	if c == nil {
		return nil, &untouched{named(id, ErrUnknownClass)}
	}
	m := c.methods[method]
	if m == nil {
		return nil, &untouched{fmt.Errorf("%s: %w: %q", id, ErrUnknownMethod, method)}
	}
	if err := validID(id); err != nil {
		return nil, &untouched{err}
	}
	op := m.take()
	r := op.request()
	r.init(id, op, opts)
	if err := op.decodeArg(h.options.Codec, arg); err != nil {
		return nil, &untouched{badArgument(id, method, err)}
	}
	if r.key != "" {
		r.print = fingerprint(arg)
	}
	if err := h.Invoke(ctx, r); err != nil {
		return nil, h.touched(r, err) // a turn may still use the operation
	}
	answer, err := op.encodeResult(h.options.Codec)
	op.recycle()
	return answer, err
}

// touched returns the error of a request, marked as untouched if the request has left nothing
// behind, and only then: the handler may return the error of another call.
func (h *Host) touched(r *Request, err error) error {
	if u, ok := err.(*untouched); ok {
		err = u.error
	}
	if r.left || !r.draft.at.IsZero() || errors.Is(err, ErrStorage) || h.calledOthers(r) {
		return err
	}
	return &untouched{err}
}

// callFrom runs a call that a turn of a, which holds its object, makes to another object.
// It returns as soon as the other turn has ended, without a wait for the disk. Instead
// this object depends on the ticket of the reply from then on, so that its own reply
// waits for the commits of both.
func (h *Host) callFrom(ctx context.Context, t *turn, a *activation, c *hosted, r *Request) error {
	w, err := h.link(t, a, r)
	if err != nil {
		return err
	}
	defer h.unlink(w)
	err = c.deliver(ctx, r)
	if !r.left {
		a.depend(r.ticket)
	}
	return err
}

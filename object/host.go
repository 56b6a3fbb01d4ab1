package object

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v3"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// Host is a process's runtime over one store: it activates objects, runs their
// turns and fires their alarms. Its methods may be called from any task. Two
// hosts in one process, on two directories, do not know of each other.
type Host struct {
	options Options
	seams   seam.Seams
	store   *storage.Store
	hosted  map[string]*hosted // by name of the class; never changes
	names   []string           // of the classes, in the order of Open
	alarms  *alarm.Scheduler
	flights flights
	waits   waits
	awaits  awaits
	lru     lru
	batches sync.Pool // of *storage.Batch
	// doneChans are those of requests that were answered.
	doneChans sync.Pool
	expiry    expiry
	recalls   recallBudget
	watch     watchers
	held      holdWatch
	lazy      lazySync
	crew      crew
	runway    runway
	durably   durably
	report    report
	metrics   *metrics

	suspects suspects

	life life

	// departed is the newest ticket that any activation out of memory depended on.
	// What is read of its object rests on it.
	departed atomic.Uint64
}

// hosted is a class in a host.
type hosted struct {
	*class
	host    *Host
	options ClassOptions
	live    *xsync.MapOf[string, *activation]
	failing failing
	counts  classCounts

	backlogs backlogs
	permits  *permits // nil: the class has no limit
}

// Open opens the store and starts the host: it finds what an earlier process
// left open and begins to recover it, and fires the alarms that are due. It
// returns an error for each mistake in the options and the definitions, and those
// of storage.Open. If it fails, it has closed Options.Storage.Engine.
func Open(o Options, defs ...Definition) (*Host, error) {
	o, err := o.withDefaults()
	h := &Host{options: o, seams: o.Seams, hosted: make(map[string]*hosted)}
	h.batches.New = func() any { return new(storage.Batch) }
	h.doneChans.New = func() any { return make(chan struct{}, 1) }
	h.lru.init(h)
	h.crew.executor, h.durably.host = h.seams.Executor, h
	h.life.init()
	h.recalls.total = recallBytes
	if err = errors.Join(err, h.register(defs)); err != nil {
		if e := o.Storage.Engine; e != nil {
			_ = e.Close() // err says why the host cannot be opened
		}
		return nil, err
	}
	h.held.init(h)
	if h.store, err = storage.Open(o.Storage); err != nil {
		return nil, err
	}
	h.runway.crew, h.runway.log, h.runway.life = &h.crew, h.store, &h.life
	h.metrics = newMetrics(h)
	if err := h.start(); err != nil {
		h.expiry.stop()
		h.life.end(err)
		return nil, errors.Join(err, h.store.Abandon())
	}
	return h, nil
}

// register takes the definitions, and reports all that is wrong with them.
func (h *Host) register(defs []Definition) error {
	var errs []error
	for i, d := range defs {
		c := definitionOf(d)
		switch {
		case c == nil || c.construct == nil:
			errs = append(errs, fmt.Errorf("object: definition %d of %d is nil or empty: pass what object.Define or a job type's Define returned", i+1, len(defs)))
		case len(c.wrong()) > 0:
			errs = append(errs, c.wrong()...)
		case h.hosted[c.name] != nil:
			errs = append(errs, fmt.Errorf("object: class %q is defined twice", c.name))
		default:
			h.hosted[c.name] = &hosted{
				class: c, host: h, options: c.options.withDefaults(&h.options),
				live: xsync.NewMapOf[string, *activation](), permits: newPermits(h, c.options.Works),
			}
			h.names = append(h.names, c.name)
		}
	}
	return errors.Join(errs...)
}

// start begins what runs by itself: the watch over the store, expiry, recovery
// and alarms, in this order.
func (h *Host) start() error {
	alarms, err := alarm.NewScheduler(h.schedulerConfig())
	if err != nil {
		return err
	}
	h.alarms = alarms
	h.seams.Executor.Go("storage/watch", h.watchStore)
	if err := h.expiry.start(h); err != nil {
		return err
	}
	if err := h.judgeCrash(); err != nil {
		return err
	}
	if err := h.recoverOpen(); err != nil {
		return err
	}
	h.suspects.start()
	h.alarms.Start()
	return nil
}

// watchStore ends the host when its store dies.
func (h *Host) watchStore() {
	if h.seams.Executor.Wait(h.life.ctx, h.store.Dead()) == nil {
		h.fail(h.store.Err())
	}
}

// Epoch is the number of this opening of the store, greater than every earlier
// one.
func (h *Host) Epoch() uint64 { return h.store.Epoch() }

// Store is the host's store, for checks of what is stored. Its rows must not be
// changed while the host is open.
func (h *Host) Store() *storage.Store { return h.store }

// Seams are the clock, executor, random source and probe of the host.
func (h *Host) Seams() *seam.Seams { return &h.seams }

// Invoke runs a request from outside, or, if ctx is a turn's of this host, as a
// call of that turn's object. Method.Call is what users call.
func (h *Host) Invoke(ctx context.Context, r *Request) error {
	c := h.hosted[r.id.Class]
	if c == nil {
		return named(r.id, ErrUnknownClass)
	}
	if r.sent {
		return fmt.Errorf("%s: object: a Caller passed on a request twice; make another call", r.id)
	}
	r.sent = true
	t, a := h.turnBehind(ctx)
	if t != nil && t.holds() {
		return h.callFrom(ctx, t, a, c, r)
	}
	if err := h.life.enterCall(r.exempt); err != nil {
		return named(r.id, err)
	}
	defer h.life.leaveCall(r.exempt)
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
// durable (O7). An error of the handler may tell what it read, so it waits too.
func (h *Host) outside(ctx context.Context, c *hosted, r *Request) error {
	r.gated = !r.unconfirmed
	err := c.deliver(ctx, r)
	if r.left {
		return err
	}
	if r.unconfirmed {
		h.lazy.plan(h)
		return err
	}
	if e := h.hold(r); e != nil {
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

// unheld is the error of a call whose reply could not be held until it was durable. A
// call that has committed nothing is refused by the end of its host; of another one
// the outcome is not known.
func (h *Host) unheld(r *Request, err error) error {
	if r.draft.at.IsZero() {
		return h.storageError(r.id, err)
	}
	return named(r.id, err)
}

// hold keeps the reply of a turn that has ended until it is durable.
func (h *Host) hold(r *Request) error {
	if !r.follower.Enrolled() && h.store.Durable(r.ticket) {
		return nil
	}
	began := r.draft.at
	if began.IsZero() { // it waits for what others have committed
		began = h.seams.Steady()
	}
	if err := h.store.WaitFollowed(&r.follower, r.ticket); err != nil {
		return err
	}
	h.metrics.gate.Observe(h.seams.Steady().Sub(began).Seconds())
	return nil
}

// CallBytes calls a method by name with an encoded argument and returns the
// encoded answer, as a server does for callers elsewhere. It returns the errors
// of Method.Call, and ErrUnknownMethod.
func (h *Host) CallBytes(ctx context.Context, class, name, method string, arg []byte, opts ...CallOption) ([]byte, error) {
	id := storage.ID{Class: class, Name: name}
	c := h.hosted[class]
	if c == nil {
		return nil, named(id, ErrUnknownClass)
	}
	newOp := c.methods[method]
	if newOp == nil {
		return nil, fmt.Errorf("%s: %w: %q", id, ErrUnknownMethod, method)
	}
	if err := id.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadName, err)
	}
	op := newOp().(callable)
	r := op.request()
	r.init(id, op, opts)
	if err := op.decodeArg(h.options.Codec, arg); err != nil {
		return nil, fmt.Errorf("%s: argument of %s: %w", id, method, err)
	}
	if err := h.Invoke(ctx, r); err != nil {
		return nil, err
	}
	return op.encodeResult(h.options.Codec)
}

// NewName returns a random name that no other object has.
func (h *Host) NewName() string {
	return fmt.Sprintf("%016x%016x", h.seams.Rand.Uint64(), h.seams.Rand.Uint64())
}

// fail ends the host after an error of its store (O13).
func (h *Host) fail(err error) {
	if errors.Is(err, storage.ErrClosed) {
		return
	}
	if h.life.end(err) {
		h.options.Logger.Error("host ends: storage failed", "error", err)
		h.watch.stop(err)
		h.alarms.Stop()
		h.suspects.close()
		h.closePermits()
		h.expiry.stop()
	}
}

// Err returns the error that ended the host, or nil while it lives.
func (h *Host) Err() error { return h.life.err() }

// Done is closed when the host has ended, by Shutdown or by an error.
func (h *Host) Done() <-chan struct{} { return h.life.done }

// life is whether a host takes calls, and what it still runs.
type life struct {
	ctx      context.Context // ends when the host cancels everything it runs
	cancel   context.CancelCauseFunc
	done     chan struct{} // closed when the host has ended
	closed   chan struct{} // closed when Shutdown has ended; closeErr is what it returns
	closeErr error

	busy    atomic.Int64 // what is under way: oneCall for each call from outside, 1 for all else
	closing atomic.Bool  // no new call is taken
	shut    atomic.Bool  // Shutdown has been called

	mu    sync.Mutex
	cause error         // why the host ended
	ended bool          // done is closed
	idle  chan struct{} // one slot; told when busy reaches 0 while closing
}

func (l *life) init() {
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.done, l.closed = make(chan struct{}), make(chan struct{})
	l.idle = make(chan struct{}, 1)
}

// oneCall is what a call from outside counts in life.busy.
const oneCall = 1 << 32

// begin counts something of the runtime's own that begins.
func (l *life) begin() { l.busy.Add(1) }

// enter counts something that begins. Exempt are the runtime's own.
func (l *life) enter(exempt bool) error { return l.admit(1, exempt) }

// leave counts something that ended.
func (l *life) leave() { l.release(1) }

// enterCall and leaveCall are enter and leave of a request, which is a call from
// outside if it is not exempt.
func (l *life) enterCall(exempt bool) error { return l.admit(weight(exempt), exempt) }

func (l *life) leaveCall(exempt bool) { l.release(weight(exempt)) }

// weight is what a request counts in life.busy.
func weight(exempt bool) int64 {
	if exempt {
		return 1
	}
	return oneCall
}

// calls is how many calls from outside are under way.
func (l *life) calls() int64 { return l.busy.Load() / oneCall }

// running is how many things are under way, calls among them.
func (l *life) running() int64 {
	n := l.busy.Load()
	return n/oneCall + n%oneCall
}

func (l *life) admit(n int64, exempt bool) error {
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

func (l *life) release(n int64) {
	if l.busy.Add(-n) == 0 && l.closing.Load() {
		select {
		case l.idle <- struct{}{}:
		default:
		}
	}
}

func (l *life) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// end ends the host for cause and reports whether it was this call that did. If
// the cause is not a shutdown, everything that runs is cancelled.
func (l *life) end(cause error) bool {
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

package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
)

// Policy is what a job type tells its engine. All methods run in a turn of the
// object. They write to storage first and change memory after it: a turn that
// fails after it wrote resets the activation, and one that fails before must
// have changed nothing.
type Policy interface {
	// Due begins what is due at now, with Engine.Begin. It is called at the end
	// of each turn, wake-up and end batch, unless the host is shutting down.
	Due(ctx context.Context, now time.Time) error
	// Next returns the earliest time at which Due has something to do, or zero
	// if that takes an event. It reads nothing and depends only on what is
	// stored, not on the present.
	Next() time.Time
	// Ended stores what follows from the end of x. It is called once for each
	// execution that ends, in its end batch, and x is no longer open. A run
	// whose outcome Waits does so until out.Run.RetryAt, as Next
	// must say; then Due begins it again with that Run.
	Ended(ctx context.Context, x Execution, out Outcome) error
}

// Settler is a Policy that collects in memory what a turn has changed, and writes
// it once.
type Settler interface {
	// Settle writes what the turn has collected. It is called at the end of
	// each turn, wake-up and end batch, also while the host shuts down, but not
	// in a turn that ends the object.
	Settle(ctx context.Context, now time.Time) error
}

// Idler is a Policy of objects that end by themselves when they have had nothing to do
// for some time.
type Idler interface {
	// IdleEnd returns when the object ends if nothing changes until then; zero: never.
	// It is asked while Next is zero and nothing is open. Due ends the object. It reads
	// nothing and depends only on what is stored, not on the present.
	IdleEnd() time.Time
}

// Engine is the executions of one object: it begins them, keeps their leases,
// ends them, and recovers those that were lost. It keeps the object's alarm and
// its open-execution mark, which nobody else touches. All its methods are called
// in a turn of the object.
type Engine struct {
	st *object.State
	o  Options
	p  Policy

	open    map[Token]*execution
	checkAt time.Time // no open execution is to be looked at before it; zero if none is open
	mark    mark
	purged  bool      // the object ends with this turn
	closing bool      // the host was shutting down when this turn began
	at      time.Time // when this turn began

	ends ends
}

// mark is what is stored of the object's open-execution mark.
type mark uint8

const (
	noMark  mark = iota
	oldMark      // written by an earlier activation
	ownMark      // written by this one
)

// Attach returns the engine of the object of st. A constructor calls it when p
// has loaded what it has stored. It makes the check of a wake-up (R1 to R3) and
// arms what that asks for; it never runs what is due.
//
// The object's class must be defined with ClassOptions. With the options of other
// classes a wake-up that fails, or is cut off by crashes, a few times in a row
// becomes a dead letter, and nothing runs until the object is called.
func Attach(ctx context.Context, st *object.State, o Options, p Policy) (*Engine, error) {
	e, err := newEngine(ctx, st, o, p)
	if err != nil {
		return nil, err
	}
	return e, e.wake(ctx)
}

// newEngine is an engine that has read what is open and not yet acted on it.
func newEngine(ctx context.Context, st *object.State, o Options, p Policy) (*Engine, error) {
	e := &Engine{st: st, o: o.WithDefaults(), p: p, open: make(map[Token]*execution)}
	e.at = e.present()
	if err := e.load(ctx); err != nil {
		return nil, err
	}
	for _, x := range e.open {
		e.examine(x)
		e.note(x)
	}
	return e, nil
}

// Turn is a turn of the object that changes something: it runs fn, begins what
// is due, and stores mark and alarm for what is open and what remains.
func (e *Engine) Turn(ctx context.Context, fn func(ctx context.Context) error) error {
	e.at, e.closing = e.present(), e.st.Closing()
	if err := fn(ctx); err != nil {
		return err
	}
	if e.purged {
		return nil
	}
	if !e.closing { // else what is due stays due until the next open
		if err := e.p.Due(ctx, e.Now()); err != nil {
			return err
		}
	}
	if e.purged {
		return nil
	}
	if p, ok := e.p.(Settler); ok {
		if err := p.Settle(ctx, e.Now()); err != nil {
			return err
		}
	}
	return e.settle(ctx)
}

// Spec is what an execution is to be.
type Spec struct {
	Subject string // what is executed; see Execution
	Run     Run    // its progress so far
	Key     string // see Execution; empty means the object's id and Run.Number
	// Work is run beside the turns. Nil makes an execution whose holder is a
	// caller outside: it lives as long as its lease, whatever becomes of the
	// host, and ends by Finish.
	Work Work
	// Hook says that a hook of the user's is called, which is no run: failures are
	// tried again ten times in all, with waits of 1 s, 2 s and so on, and its
	// starts and successes emit no events.
	Hook bool
	// Size is about how many bytes the end of the execution writes if it fails, so
	// that not too many failures are stored in one batch.
	Size    int
	Timeout time.Duration // in place of Options.Timeout, if not zero
	Lease   time.Duration // in place of Options.Lease, if not zero
}

// Begin opens an execution, in the batch of the turn. Its work starts when the
// batch is durable. It needs a Turn; Policy.Due is the place to call it. In a
// turn of a host that shuts down it returns ErrClosing and changes nothing.
func (e *Engine) Begin(ctx context.Context, s Spec) (Execution, error) {
	if e.closing {
		return Execution{}, ErrClosing
	}
	x := e.newExecution(&s)
	if x.alive() && s.Run.CutEpoch != 0 {
		x.work.hold(e.st.Suspicion(x.record()).Held(s.Run.Cuts, s.Run.CutEpoch))
	}
	if err := e.save(ctx, x); err != nil {
		return Execution{}, err
	}
	if err := e.tell(ctx, EventStart, x.Execution, Event{}); err != nil {
		return Execution{}, err
	}
	e.open[x.Token] = x
	if !x.alive() {
		e.examine(x)
		e.note(x)
		return *x.Execution, nil
	}
	e.note(x)
	if x.Held {
		return *x.Execution, e.st.StartSuspect(ctx, &x.work.Work, x.record(), "execution", x.work.run)
	}
	return *x.Execution, e.st.Start(ctx, &x.work.Work, "execution", x.work.run)
}

// newExecution is an execution that begins now, as s says.
func (e *Engine) newExecution(s *Spec) *execution {
	now := e.Now()
	given := Execution{
		Token: e.newToken(), Subject: s.Subject, Key: s.Key, Run: s.Run.begun(now),
		Epoch: e.st.Epoch(), Began: now, Lease: now.Add(cmp.Or(s.Lease, e.o.Lease)), Outside: s.Work == nil, Hook: s.Hook,
	}
	if given.Key == "" {
		given.Key = fmt.Sprintf("%s/%d", e.st.ID(), given.Run.Number)
	}
	if s.Work == nil {
		held := given
		return &execution{Execution: &held}
	}
	w := e.newWork(&given, s)
	return &execution{Execution: &w.given, work: w}
}

// Open returns how many executions are open, lost ones included.
func (e *Engine) Open() int { return len(e.open) }

// Executions returns the open executions in the order of their begin.
func (e *Engine) Executions() []Execution {
	all := e.sorted()
	out := make([]Execution, len(all))
	for i, x := range all {
		out[i] = *x.Execution
	}
	return out
}

// Lookup returns the open execution with the token.
func (e *Engine) Lookup(t Token) (Execution, bool) {
	x, ok := e.open[t]
	if !ok {
		return Execution{}, false
	}
	return *x.Execution, true
}

// Cancel ends the context of a work with cause, and reports whether there is such
// a work here. If the work then returns an error its outcome is Cancelled; if it
// succeeds all the same, the outcome is Done.
func (e *Engine) Cancel(t Token, cause error) bool {
	x, ok := e.open[t]
	if !ok || !x.alive() {
		return false
	}
	x.work.stop(cause, true)
	return true
}

// Close forgets an execution and cancels its work; Ended is not called. It
// returns ErrStaleExecution if it is not open.
func (e *Engine) Close(ctx context.Context, t Token) error {
	x, ok := e.open[t]
	if !ok {
		return e.stale(t)
	}
	if err := e.forget(ctx, x); err != nil {
		return err
	}
	if x.alive() {
		x.work.stop(ErrStaleExecution, true)
	}
	return nil
}

// Renew extends the lease of an execution that a caller holds until lease from now, or
// until Options.Lease from now if lease is zero, and returns its new end. It returns
// ErrStaleExecution if the execution is not open.
func (e *Engine) Renew(ctx context.Context, t Token, lease time.Duration) (time.Time, error) {
	x, ok := e.open[t]
	if !ok {
		return time.Time{}, e.stale(t)
	}
	if lease == 0 {
		lease = e.o.Lease
	}
	x.extend(e.Now().Add(lease))
	if !x.alive() {
		e.examine(x)
	}
	return x.Lease, e.save(ctx, x)
}

// Finish ends an execution that a caller holds, in the caller's turn: with res, or
// with err if that is not nil. It returns ErrStaleExecution if it is not open.
func (e *Engine) Finish(ctx context.Context, t Token, res Result, err error) error {
	x, ok := e.open[t]
	if !ok {
		return e.stale(t)
	}
	return e.conclude(ctx, x, ending{result: res, err: err})
}

// Purge ends the object with this turn: all its keys, its alarm and its marks.
func (e *Engine) Purge(ctx context.Context) error {
	if err := e.st.Purge(ctx); err != nil {
		return err
	}
	e.purged = true
	return nil
}

// stale counts a try to end or extend an execution that is not open.
func (e *Engine) stale(t Token) error {
	e.st.CountExecution("stale")
	return fmt.Errorf("%s: %w: %s", e.st.ID(), ErrStaleExecution, t)
}

// conclude ends x: what it made is stored, what follows is decided and told.
func (e *Engine) conclude(ctx context.Context, x *execution, how ending) error {
	if how.err == nil && how.result.Store != nil {
		switch err := how.result.Store(ctx); {
		case tooLarge(err):
			how = ending{err: err}
		case err != nil:
			return err
		}
	}
	o := e.o
	if x.Hook {
		o.Retry = hookRetry
	}
	out := o.decide(x.Run, how, e.Now(), e.st.Seams().Rand)
	if err := e.forget(ctx, x); err != nil {
		return err
	}
	if err := e.tellEnd(ctx, x.Execution, out); err != nil {
		return err
	}
	if err := e.log(ctx, x.Execution, out); err != nil {
		return err
	}
	e.st.CountExecution(string(out.Kind))
	return e.p.Ended(ctx, *x.Execution, out)
}

// tooLarge tells what a run made from what the store is able to do.
func tooLarge(err error) bool {
	return errors.Is(err, object.ErrValueTooLarge) || errors.Is(err, object.ErrBatchTooLarge) || errors.Is(err, object.ErrKeyTooLarge)
}

// Now is the time at which the present Turn began, as it is stored: in UTC and
// without a monotonic part. All that a turn does happens at this time.
func (e *Engine) Now() time.Time { return e.at }

// present is the time as it is stored.
func (e *Engine) present() time.Time { return e.st.Now().Round(0).UTC() }

// examine finds out what to do about an execution that has no work here.
func (e *Engine) examine(x *execution) {
	s := recovery.Snapshot{
		Now: e.Now(), Epoch: e.st.Epoch(), Began: e.st.OpenedAt().Round(0).UTC(),
		Open: true, OpenEpoch: x.Epoch, Since: x.Began, Losses: x.Run.Losses,
		Charges: e.st.Suspicion(x.record()).Charges, Free: e.st.EndedInOrder(x.Epoch),
	}
	if x.Outside {
		s.Until = x.Lease
	}
	x.action = recovery.Check(s, e.o.limits())
}

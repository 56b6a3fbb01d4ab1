package object

import (
	"context"

	"github.com/holdfast-dev/holdfast/storage"
)

// Observer is told of the operations of a host, for example by a tracer; see Options.Observer.
// Its methods, and those of an Observation, are called on the goroutines that do the work. So they
// must not wait, and a panic of theirs is not recovered.
type Observer interface {
	// Begin is told of an operation before it begins. The context that it returns must come from
	// ctx. The handler, or the work, gets that context, so that operations which it begins have it
	// too. Any number of goroutines call Begin at the same time.
	Begin(ctx context.Context, op Operation) (context.Context, Observation)
}

// Observation follows one operation. Its methods are called one after another, but for a call
// whose caller leaves early (Detached, or a context that ends while the call waits): then Ended may
// come before the others, or at the same time.
type Observation interface {
	// TurnBegan is told that the wait for the object is over: its constructor, if there is no
	// instance, and the handler run now.
	TurnBegan()
	// TurnEnded is told that the turn has committed, or has failed with err. The reply of a call
	// from outside then waits for the disk.
	TurnEnded(err error)
	// Ended is told, once, that the operation is over, with the error that its caller gets.
	Ended(err error)
}

// Operation is work of a host.
type Operation struct {
	// Kind is call, alarm, message or execution. A call may come from outside, from a handler or
	// from State.Do. An alarm and a message begin with their turn. An execution is one run of a
	// job's work in this process; it has no turn of its own.
	Kind   string
	ID     storage.ID
	Method string // of a call or a message; "work" for State.Do
}

// observed is the context of an operation that is observed. The turn of the request finds its
// Observation there, so that a request has no field for it, and costs no byte more without an
// Observer. A turn of another request may have the same context, for example that of Host.Delete
// in a handler; it is not observed.
type observed struct {
	context.Context
	request     *Request
	observation Observation
	outer       context.Context // of an operation that begins with its turn; nil for a call
}

type observedKey struct{}

// Value returns o for its own key.
func (o *observed) Value(key any) any {
	if key == (observedKey{}) {
		return o
	}
	return o.Context.Value(key)
}

// observe tells the Observer of an operation that begins.
func (h *Host) observe(ctx context.Context, r *Request, kind string) *observed {
	op := Operation{Kind: kind, ID: r.id, Method: methodOf(r.op)}
	if op.Method == "" && r.what == &whatWork {
		op.Method = whatWork
	}
	o := &observed{request: r}
	o.Context, o.observation = h.options.Observer.Begin(ctx, op)
	return o
}

// invokeObserved is invoke with an Observer. A handler that ends its goroutine ends this one too.
func (h *Host) invokeObserved(ctx context.Context, r *Request) (err error) {
	o := h.observe(ctx, r, "call")
	err = &PanicError{ID: r.id}
	defer func() { o.observation.Ended(err) }()
	err = h.invoke(o, r)
	return err
}

// observedOf returns the observation of a request, or nil.
func observedOf(r *Request) *observed {
	if o, ok := r.ctx.Value(observedKey{}).(*observed); ok && o.request == r {
		return o
	}
	return nil
}

// observeTurn tells the Observer that the turn of a request begins. Alarms and messages begin
// with it. The caller owns the turn.
func (a *activation) observeTurn(r *Request) {
	o := observedOf(r)
	if o == nil {
		kind := "message"
		switch r.op.(type) {
		case *delivery:
		case *firing:
			kind = "alarm"
		default:
			return
		}
		outer := r.ctx
		o = a.host.observe(outer, r, kind)
		o.outer, r.ctx = outer, o
	}
	o.observation.TurnBegan()
}

// observeEnd tells the Observer that the turn of a request has ended. The request of an alarm or a
// message may be served again, and is another operation then.
func (a *activation) observeEnd(r *Request) {
	o := observedOf(r)
	if o == nil {
		return
	}
	o.observation.TurnEnded(r.err)
	if o.outer != nil {
		r.ctx = o.outer
		o.observation.Ended(r.err)
	}
}

// ObserveExecution tells the host's Observer, if there is one, that an execution of this object
// begins its work with ctx. The work gets the context that it returns, and ended is called when the
// work has returned, with its error. Job types call it, from any goroutine.
func (d *Driver) ObserveExecution(ctx context.Context) (_ context.Context, ended func(error)) {
	o := d.state.act.host.options.Observer
	if o == nil {
		return ctx, func(error) {}
	}
	ctx, observation := o.Begin(ctx, Operation{Kind: "execution", ID: d.state.act.object.ID})
	return ctx, observation.Ended
}

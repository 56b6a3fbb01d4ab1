package object

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// Caller is where a call comes from: a *Host, the *State of an object, or a
// simulation.
type Caller interface {
	// Invoke runs the request and returns its error, if any.
	Invoke(ctx context.Context, r *Request) error
}

// CallOption changes one call.
type CallOption struct {
	key         string
	ttl         time.Duration
	unconfirmed bool
}

// Idempotent gives the call a key. The first answer under the key is stored in
// the batch of the turn that gave it, and returned to every call with the same
// key and method for ttl (default: a day) without running the handler again. Calls with the key
// that arrive while the first runs wait for it. An error is no answer.
func Idempotent(key string, ttl time.Duration) CallOption { return CallOption{key: key, ttl: ttl} }

// Unconfirmed lets the reply out before the turn's commit is durable. The newest
// of such commits may be lost when the process or the power dies; never torn and
// never out of order. A later commit that is confirmed makes them durable, and
// the host does so within about a second.
func Unconfirmed() CallOption { return CallOption{unconfirmed: true} }

// operation is what a request does in its turn.
type operation interface {
	run(ctx context.Context, a *activation) error
}

// callable is an operation that can be called by name and answered from a store.
type callable interface {
	operation
	request() *Request
	methodName() string
	decodeArg(c Codec, b []byte) error
	encodeResult(c Codec) ([]byte, error)
	decodeResult(c Codec, b []byte) error
}

// Request is one call on its way to an object and back. It is made by Method.Call;
// a Caller passes it on, once, and must not use it after that.
type Request struct {
	ctx  context.Context // the caller's
	id   storage.ID
	op   operation
	key  string        // idempotency key; empty: none
	ttl  time.Duration // of the stored answer
	life *State        // the activation it is bound to; nil: any
	what *string       // the method's name, or what else it runs; nil: nothing of the user's

	sent        bool // it has been passed on
	unconfirmed bool
	exempt      bool // from the mailbox's limits and from shutdown: alarms, work
	gated       bool // the reply is let out when the turn is durable

	// left: the caller has gone while the handler ran, and must not look at what
	// the turn sets. Set by the caller.
	left bool

	// Set by the mailbox.
	state    atomic.Int32 // waiting, started, and so on, see below
	next     *Request     // in the queue
	queuedAt time.Time
	done     chan struct{} // one slot; nil if the caller runs the turn itself

	// Set by the turn.
	turn     *turn // nil until it begins, if whoever made the request gave none
	draft    draft
	err      error
	ticket   storage.Ticket   // what the reply depends on
	follower storage.Follower // of a gated reply whose caller waits for done
}

// How far a request in a mailbox has come.
const (
	waiting int32 = iota
	started
	replying  // its turn has ended, and the reply is on its way
	abandoned // its caller has gone while it waited
	departed  // its caller has gone while the handler ran; the end of its turn is awaited by Shutdown
)

func (r *Request) init(id storage.ID, op operation, opts []CallOption) {
	r.id, r.op = id, op
	for _, o := range opts {
		if o.key != "" {
			r.key, r.ttl = o.key, o.ttl
		}
		r.unconfirmed = r.unconfirmed || o.unconfirmed
	}
}

// ID names the object that is called.
func (r *Request) ID() storage.ID { return r.id }

// funcOp is an operation of the runtime itself.
type funcOp func(ctx context.Context, a *activation) error

func (f funcOp) run(ctx context.Context, a *activation) error { return f(ctx, a) }

package debounce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// ErrFull is the error of Add while Config.MaxPending events wait for a flush.
// The event was not added. Add it again after the flush.
var ErrFull = errors.New("debounce: too many events wait")

// Job is a debounce job. Make it once, at package level, and pass it to
// object.Open as a Definition. Each id names one object with events of its own:
// the first Add makes it, and it ends when it has been idle for Config.Dedup.
//
// All methods are safe for concurrent use. from is a *object.Host in a program,
// or the *object.State, Task, Run or Flush of the code that calls. All methods
// but Add return jobs.ErrNotFound if there is no such object.
//
// With the Outbox of a State as from, the methods Add, Pause, Resume and Terminate happen
// if and only if the turn commits, a little later. If the job refuses one then, it becomes
// a dead letter of the object; but an Add with ErrFull is tried again ten times before
// that, which takes 40 to 51 minutes. The other methods return object.ErrNeedsAnswer.
type Job[E, S any] struct {
	*object.Class[instance]
	control
	config Config[E, S]
	events engine.Reader[E]
	states engine.Reader[S]

	add     call[E, Ack]
	pending call[none, Pending[E, S]]
}

// control has the methods of a Job that have none of its types. The compiler makes the code of a Job again for each E
// and S, in each package that uses one, so a Job itself has only what needs them. The
// methods here are not inlined, because each Job has wrappers of them.
type control struct{ d *definition }

// definition is a Job without its types.
type definition struct {
	untyped
	class *object.Class[instance]
	calls calls
	// reduce passes an event to Config.Reduce, with the state of the open generation g, and returns the new state. The
	// state is that in memory, or encoded if encoded is not nil.
	reduce func(in *instance, g generation, encoded []byte, event any) (state any, err error)
	// flush makes one attempt to flush a generation with the rows.
	flush func(ctx context.Context, in *instance, x engine.Execution, g generation, stored rows, key string) error
}

// calls are the methods of an instance that have no type of the Job. They are functions, because the compiler would make
// an object.Method again in each package to whose types it belongs.
type calls struct {
	flushNow      call[none, uint64]
	status        call[none, Status]
	pause, resume call[none, none]
	terminate     call[string, none]
	clear         call[none, int]
}

// call is what object.HandleCall returns.
type call[A, R any] = func(ctx context.Context, from object.Caller, id string, arg A, opts ...object.CallOption) (R, error)

// none stands for no argument or no result.
type none struct{}

// New makes a debounce job. It does not fail: object.Open returns the mistakes
// in c.
func New[E, S any](c Config[E, S]) *Job[E, S] {
	d := define(c.untyped())
	j := &Job[E, S]{Class: d.class, control: control{d}, config: c, events: c.events(), states: c.states()}
	d.reduce, d.flush = j.reduce, j.flush
	j.add = object.HandleCall(d.class, "add", func(in *instance, ctx context.Context, ev E) (Ack, error) {
		ev, err := valid(ev)
		if err != nil {
			return Ack{}, err
		}
		return in.add(ctx, ev)
	}, object.Sent(func(E) Ack { return Ack{Sent: true} }))
	j.pending = object.HandleCall(d.class, "pending", func(in *instance, ctx context.Context, _ none) (p Pending[E, S], err error) {
		g, stored, err := in.pending(ctx)
		p.Generation, p.Count, p.First, p.Last = g.number, g.count, g.first, g.last
		if err == nil && g.count > 0 {
			p.Events, p.State, err = j.read(in, g, stored)
		}
		return p, err
	})
	return j
}

// define makes the class of a job with the methods that have none of its types.
func define(c untyped) *definition {
	d := &definition{untyped: c.withDefaults()}
	d.class = object.Define(c.Name, func(ctx context.Context, st *object.State) (*instance, error) {
		return load(ctx, st, d)
	}, c.class())
	nothing, noReason := object.Sent(func(none) none { return none{} }), object.Sent(func(string) none { return none{} })
	d.calls = calls{
		flushNow:  object.HandleCall(d.class, "flushNow", (*instance).flushNow),
		status:    object.HandleCall(d.class, "status", (*instance).status),
		pause:     object.HandleCall(d.class, "pause", (*instance).pause, nothing),
		resume:    object.HandleCall(d.class, "resume", (*instance).resume, nothing),
		terminate: object.HandleCall(d.class, "terminate", (*instance).terminate, noReason),
		clear:     object.HandleCall(d.class, "clear", (*instance).clear),
	}
	d.class.Reject(c.validate())
	return d
}

// Ack is the answer of Add: the place of the event.
type Ack struct {
	// Generation is the flush that the event belongs to; see Flush.Generation.
	Generation uint64 `json:"g"`
	// Events is the number of events in the generation, this one included.
	Events int `json:"n"`
	// Sent is true if from was the Outbox of a State. The other fields are zero then. The
	// event is added once the turn has committed, unless the job refuses it.
	Sent bool `json:"sent,omitempty"`
}

// Add adds an event to the object with the given id and makes the object if
// there is none. When it returns without an error, the event is stored and
// belongs to the flush that the Ack names. With EventID, an event whose id
// was added within Config.Dedup is not added again: the answer is the first
// Ack.
//
// A paused or failed job also collects events. If the event has a method
// Validate() error, Add returns its error. Further errors are ErrFull,
// jobs.ErrInvalid and the errors of Reduce. An Add with an error has changed
// nothing, except that after a timeout its outcome is unknown: repeat it with
// the same id.
func (j *Job[E, S]) Add(ctx context.Context, from object.Caller, id string, ev E, opts ...EventOption) (Ack, error) {
	call, err := j.d.callOptions(opts)
	if err != nil {
		return Ack{}, err
	}
	return j.add(ctx, from, id, ev, call...)
}

// callOptions are the options of the call of an Add.
func (d *definition) callOptions(opts []EventOption) (call []object.CallOption, err error) {
	for _, o := range opts {
		if o.ID() == "" {
			return nil, fmt.Errorf("%w: event id is empty", jobs.ErrInvalid)
		}
		call = append(call, object.Idempotent(o.ID(), d.Dedup))
	}
	return call, nil
}

// FlushNow makes a flush of all stored events due now and does not wait for it.
// It returns the number of their last generation, or zero if there are no
// events. The flush is over once Status.Flushed has reached that number.
//
// If a flush is running, the newer events are flushed after it. If a flush
// waits for its next attempt, it is tried now, with fresh attempts and its old
// Reason. For a paused or failed job FlushNow returns a jobs.ErrIllegalMove.
//
//go:noinline
func (j *control) FlushNow(ctx context.Context, from object.Caller, id string) (generation uint64, err error) {
	return j.d.calls.flushNow(ctx, from, id, none{})
}

// Status is the answer of Job.Status.
type Status struct {
	Meta jobs.Meta `json:"meta"`
	// Generation is the number of the generation that collects events.
	Generation uint64 `json:"generation"`
	// Events is the number of its events. Due is when it will be flushed if no
	// more events come, and Reason says why. Due is zero if it has no events.
	Events int       `json:"events"`
	Due    time.Time `json:"due,omitzero"`
	Reason Reason    `json:"reason,omitempty"`
	// Waiting means that the flush is due and waits for Config.Concurrency or
	// Config.StartRate.
	Waiting bool `json:"waiting,omitempty"`
	// Flushing is the number of events in the flush that is running or waits
	// for its next attempt.
	Flushing int `json:"flushing,omitempty"`
	// Flushed is the number of the last generation that needs no flush any
	// more.
	Flushed uint64 `json:"flushed"`
	// EventsFlushed and EventsDropped count the events that were flushed, and
	// those that were dropped or cleared, since the object was made.
	EventsFlushed int64 `json:"eventsFlushed"`
	EventsDropped int64 `json:"eventsDropped,omitempty"`
	// PurgeAt is when the object ends by itself if nothing changes it before;
	// see Config.Dedup. It is zero if the object has events or a flush, owes a
	// call of OnExhausted, or is paused or failed.
	PurgeAt time.Time `json:"purgeAt,omitzero"`
}

// Status returns the state of an object. It does not wait for a running flush.
//
//go:noinline
func (j *control) Status(ctx context.Context, from object.Caller, id string) (Status, error) {
	return j.d.calls.status(ctx, from, id, none{})
}

// Pending has the events that wait for the next flush.
type Pending[E, S any] struct {
	Generation uint64    `json:"generation"`
	Count      int       `json:"count"`
	First      time.Time `json:"first,omitzero"` // when the first event came; zero if there is none
	Last       time.Time `json:"last,omitzero"`
	Events     []E       `json:"events,omitempty"` // without Reduce, in the order of their Adds
	State      S         `json:"state"`            // with Reduce
}

// Pending returns the events, or the state, that wait for the next flush. The
// events of a running flush are not among them.
func (j *Job[E, S]) Pending(ctx context.Context, from object.Caller, id string) (Pending[E, S], error) {
	return j.pending(ctx, from, id, none{})
}

// Pause keeps collecting events and begins no flush until Resume. A running
// flush ends first. Pausing a paused job changes nothing. The error is a
// *jobs.MoveError if the job has failed.
//
//go:noinline
func (j *control) Pause(ctx context.Context, from object.Caller, id string) error {
	_, err := j.d.calls.pause(ctx, from, id, none{})
	return err
}

// Resume ends a pause or a failure. A flush that is due begins at once. For any
// other status it changes nothing.
//
//go:noinline
func (j *control) Resume(ctx context.Context, from object.Caller, id string) error {
	_, err := j.d.calls.resume(ctx, from, id, none{})
	return err
}

// Terminate deletes the job: its events, its alarm and the ids it remembers, in
// one batch with an event that has the reason. A running flush is cancelled.
// The next Add makes a new job under the same id.
//
//go:noinline
func (j *control) Terminate(ctx context.Context, from object.Caller, id, reason string) error {
	_, err := j.d.calls.terminate(ctx, from, id, reason)
	return err
}

// Clear deletes the events that wait for the next flush and returns their
// number. Their ids stay known. Events of a flush that is running or waits for
// its next attempt stay, because that flush may have had effects already.
//
//go:noinline
func (j *control) Clear(ctx context.Context, from object.Caller, id string) (int, error) {
	return j.d.calls.clear(ctx, from, id, none{})
}

// Rearm applies a definition with earlier times to all existing jobs, also to
// those that are not in memory; see engine.Rearm. For example, call it once after
// a deploy that shortens Config.Quiet.
//
//go:noinline
func (j *control) Rearm(ctx context.Context, h *object.Host, o jobs.RearmOptions) (jobs.Rearmed, error) {
	return engine.Rearm(ctx, h, j.d.Name, o)
}

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
	*object.Class[instance[E, S]]
	config Config[E, S]

	add       *object.Method[E, Ack]
	flushNow  *object.Method[none, uint64]
	status    *object.Method[none, Status]
	pending   *object.Method[none, Pending[E, S]]
	pause     *object.Method[none, none]
	resume    *object.Method[none, none]
	terminate *object.Method[string, none]
	clear     *object.Method[none, int]
}

// none stands for no argument or no result.
type none struct{}

// New makes a debounce job. It does not fail: object.Open returns the mistakes
// in c.
func New[E, S any](c Config[E, S]) *Job[E, S] {
	j := &Job[E, S]{config: c.withDefaults()}
	class := object.Define(c.Name, func(ctx context.Context, st *object.State) (*instance[E, S], error) {
		return load(ctx, st, j)
	}, c.class())
	j.Class = class
	nothing, noReason := object.Sent(func(none) none { return none{} }), object.Sent(func(string) none { return none{} })
	j.add = object.Handle(class, "add", (*instance[E, S]).add, object.Sent(func(E) Ack { return Ack{Sent: true} }))
	j.flushNow = object.Handle(class, "flushNow", (*instance[E, S]).flushNow)
	j.status = object.Handle(class, "status", (*instance[E, S]).status)
	j.pending = object.Handle(class, "pending", (*instance[E, S]).pending)
	j.pause = object.Handle(class, "pause", (*instance[E, S]).pause, nothing)
	j.resume = object.Handle(class, "resume", (*instance[E, S]).resume, nothing)
	j.terminate = object.Handle(class, "terminate", (*instance[E, S]).terminate, noReason)
	j.clear = object.Handle(class, "clear", (*instance[E, S]).clear)
	class.Reject(c.Validate())
	return j
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
	var call []object.CallOption
	for _, o := range opts {
		if o.ID() == "" {
			return Ack{}, fmt.Errorf("%w: event id is empty", jobs.ErrInvalid)
		}
		call = append(call, object.Idempotent(o.ID(), j.config.Dedup))
	}
	return j.add.Call(ctx, from, id, ev, call...)
}

// FlushNow makes a flush of all stored events due now and does not wait for it.
// It returns the number of their last generation, or zero if there are no
// events. The flush is over once Status.Flushed has reached that number.
//
// If a flush is running, the newer events are flushed after it. If a flush
// waits for its next attempt, it is tried now, with fresh attempts and its old
// Reason. For a paused or failed job FlushNow returns a jobs.ErrIllegalMove.
func (j *Job[E, S]) FlushNow(ctx context.Context, from object.Caller, id string) (generation uint64, err error) {
	return j.flushNow.Call(ctx, from, id, none{})
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
func (j *Job[E, S]) Status(ctx context.Context, from object.Caller, id string) (Status, error) {
	return j.status.Call(ctx, from, id, none{})
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
	return j.pending.Call(ctx, from, id, none{})
}

// Pause keeps collecting events and begins no flush until Resume. A running
// flush ends first. Pausing a paused job changes nothing. The error is a
// *jobs.MoveError if the job has failed.
func (j *Job[E, S]) Pause(ctx context.Context, from object.Caller, id string) error {
	_, err := j.pause.Call(ctx, from, id, none{})
	return err
}

// Resume ends a pause or a failure. A flush that is due begins at once. For any
// other status it changes nothing.
func (j *Job[E, S]) Resume(ctx context.Context, from object.Caller, id string) error {
	_, err := j.resume.Call(ctx, from, id, none{})
	return err
}

// Terminate deletes the job: its events, its alarm and the ids it remembers, in
// one batch with an event that has the reason. A running flush is cancelled.
// The next Add makes a new job under the same id.
func (j *Job[E, S]) Terminate(ctx context.Context, from object.Caller, id, reason string) error {
	_, err := j.terminate.Call(ctx, from, id, reason)
	return err
}

// Clear deletes the events that wait for the next flush and returns their
// number. Their ids stay known. Events of a flush that is running or waits for
// its next attempt stay, because that flush may have had effects already.
func (j *Job[E, S]) Clear(ctx context.Context, from object.Caller, id string) (int, error) {
	return j.clear.Call(ctx, from, id, none{})
}

// Rearm applies a definition with earlier times to all existing jobs, also to
// those that are not in memory; see engine.Rearm. For example, call it once after
// a deploy that shortens Config.Quiet.
func (j *Job[E, S]) Rearm(ctx context.Context, h *object.Host, o jobs.RearmOptions) (jobs.Rearmed, error) {
	return engine.Rearm(ctx, h, j.Name(), o)
}

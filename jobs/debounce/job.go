package debounce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// ErrFull says that as many events wait as Config.MaxPending allows. The event
// was not added; it may be sent again after a flush.
var ErrFull = errors.New("debounce: too many events wait")

// Job is a debounce job as a host is opened with it. It is a value of the
// program, made once at package level. An object of it, named by an id, comes to
// be with its first event, and ends when it has been idle for Config.Dedup. Its
// methods may be called from any task; from is a *object.Host outside of objects, or
// the *object.State of the object that calls. All but Add return jobs.ErrNotFound if
// there is no such object.
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

// none stands for no argument or no answer.
type none struct{}

// New defines a debounce job. A mistake in c is returned by object.Open.
func New[E, S any](c Config[E, S]) *Job[E, S] {
	j := &Job[E, S]{config: c.withDefaults()}
	class := object.Define(c.Name, func(ctx context.Context, st *object.State) (*instance[E, S], error) {
		return load(ctx, st, j)
	}, c.class())
	j.Class = class
	j.add = object.Handle(class, "add", (*instance[E, S]).add)
	j.flushNow = object.Handle(class, "flushNow", (*instance[E, S]).flushNow)
	j.status = object.Handle(class, "status", (*instance[E, S]).status)
	j.pending = object.Handle(class, "pending", (*instance[E, S]).pending)
	j.pause = object.Handle(class, "pause", (*instance[E, S]).pause)
	j.resume = object.Handle(class, "resume", (*instance[E, S]).resume)
	j.terminate = object.Handle(class, "terminate", (*instance[E, S]).terminate)
	j.clear = object.Handle(class, "clear", (*instance[E, S]).clear)
	class.Reject(c.Validate())
	return j
}

// Ack is the answer to an Add: where the event is.
type Ack struct {
	// Generation is the flush that the event is in; see Flush.Generation.
	Generation uint64 `json:"g"`
	// Events is how many events the generation had with this one.
	Events int `json:"n"`
}

// Add adds an event to the object called id, which it makes if need be. When it
// returns without an error the event is stored, and will be in the flush that
// the Ack names. With jobs.EventID, an event whose id was acknowledged within
// Config.Dedup is not added again: the answer is the first one.
//
// An event that has a method Validate() error is refused with its error. Events
// are also collected while the job is paused or failed. Besides the errors of any
// call, Add returns ErrFull, jobs.ErrInvalid and the errors of Reduce; then
// nothing was changed.
func (j *Job[E, S]) Add(ctx context.Context, from object.Caller, id string, ev E, opts ...jobs.EventOption) (Ack, error) {
	var call []object.CallOption
	for _, o := range opts {
		if o.ID() == "" {
			return Ack{}, fmt.Errorf("%w: event id is empty", jobs.ErrInvalid)
		}
		call = append(call, object.Idempotent(o.ID(), j.config.Dedup))
	}
	return j.add.Call(ctx, from, id, ev, call...)
}

// FlushNow makes a flush of all that is stored due now. It does not wait for it:
// it returns the number of the last generation concerned, and once
// Status.Flushed has reached that number the flush is over. If nothing is stored
// it returns zero. While an attempt runs, the events of the next generation are
// flushed when it has ended. A flush that waits for its next attempt is tried at
// once, with a fresh budget of attempts, and tells the reason it had. A job that
// is paused or failed refuses with jobs.ErrIllegalMove.
func (j *Job[E, S]) FlushNow(ctx context.Context, from object.Caller, id string) (generation uint64, err error) {
	return j.flushNow.Call(ctx, from, id, none{})
}

// Status is what is known of an object.
type Status struct {
	Meta jobs.Meta `json:"meta"`
	// Generation is the number of the one that collects events.
	Generation uint64 `json:"generation"`
	// Events is how many it has, Due when it will be flushed, by what is stored
	// now, and Reason why. Due is zero if it has none.
	Events int       `json:"events"`
	Due    time.Time `json:"due,omitzero"`
	Reason Reason    `json:"reason,omitempty"`
	// Waiting says that the flush is due and waits for Config.Concurrency or
	// Config.StartRate.
	Waiting bool `json:"waiting,omitempty"`
	// Flushing is how many events are in the flush that is under way or waits
	// for its next attempt.
	Flushing int `json:"flushing,omitempty"`
	// Flushed is the number of the last generation whose flush is over.
	Flushed uint64 `json:"flushed"`
	// EventsFlushed and EventsDropped count the events that were flushed, and
	// those that were given up or cleared, since the object came to be.
	EventsFlushed int64 `json:"eventsFlushed"`
	EventsDropped int64 `json:"eventsDropped,omitempty"`
	// PurgeAt is when the object ends by itself, because it is idle, if nothing changes
	// it until then; see Config.Dedup. Zero: it has something to flush, a flush or a call
	// of OnExhausted is under way or owed, or it is paused or failed.
	PurgeAt time.Time `json:"purgeAt,omitzero"`
}

// Status tells how the job is.
func (j *Job[E, S]) Status(ctx context.Context, from object.Caller, id string) (Status, error) {
	return j.status.Call(ctx, from, id, none{})
}

// Pending is what waits for the next flush.
type Pending[E, S any] struct {
	Generation uint64    `json:"generation"`
	Count      int       `json:"count"`
	First      time.Time `json:"first,omitzero"` // when the first event came; zero if there is none
	Last       time.Time `json:"last,omitzero"`
	Events     []E       `json:"events,omitempty"` // without Reduce, in order
	State      S         `json:"state"`            // with Reduce
}

// Pending returns the events, or the state, that wait for the next flush. Those
// of a flush that is under way are not among them.
func (j *Job[E, S]) Pending(ctx context.Context, from object.Caller, id string) (Pending[E, S], error) {
	return j.pending.Call(ctx, from, id, none{})
}

// Pause keeps everything, goes on collecting events, and begins no flush until
// Resume. A flush that is under way ends first. Nothing changes if the job is paused
// already. The error is a jobs.MoveError if the job has failed.
func (j *Job[E, S]) Pause(ctx context.Context, from object.Caller, id string) error {
	_, err := j.pause.Call(ctx, from, id, none{})
	return err
}

// Resume ends a pause or a failure; what is due is flushed at once. Nothing changes
// if the job is neither paused nor failed.
func (j *Job[E, S]) Resume(ctx context.Context, from object.Caller, id string) error {
	_, err := j.resume.Call(ctx, from, id, none{})
	return err
}

// Terminate removes the job: its events, its alarm and the ids it remembers, in
// one batch with the event that tells of it. A flush that is under way is
// cancelled. The id may be used again.
func (j *Job[E, S]) Terminate(ctx context.Context, from object.Caller, id, reason string) error {
	_, err := j.terminate.Call(ctx, from, id, reason)
	return err
}

// Clear discards the events that wait for the next flush and returns how many
// they were. Their ids stay known. Events of a flush that is under way, or waits
// for its next attempt, stay, since it may have had effects already.
func (j *Job[E, S]) Clear(ctx context.Context, from object.Caller, id string) (int, error) {
	return j.clear.Call(ctx, from, id, none{})
}

// Rearm makes a definition that asks for earlier times count for all jobs of it, also
// for those that wait and are not in memory; see jobs.Rearm.
func (j *Job[E, S]) Rearm(ctx context.Context, h *object.Host, o jobs.RearmOptions) (jobs.Rearmed, error) {
	return jobs.Rearm(ctx, h, j.Name(), o)
}

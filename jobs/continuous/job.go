package continuous

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Job is a continuous job as a host is opened with it. It is a value of the
// program, made once at package level. An object of it, named by an id, is one
// job with a schedule and a state of its own. Its methods may be called from any
// task; from is a *object.Host outside of objects, or the *object.State of the
// object that calls. Besides the errors of any call, all but Start return
// jobs.ErrNotFound if there is no such job, and those that change something
// return a *jobs.MoveError (a jobs.ErrIllegalMove) where the job's status does
// not allow it; then nothing was changed.
type Job[S any] struct {
	*object.Class[instance[S]]
	config Config[S]

	start     *object.Method[S, Started]
	trigger   *object.Method[none, none]
	status    *object.Method[none, Status]
	state     *object.Method[none, S]
	pause     *object.Method[none, none]
	resume    *object.Method[none, none]
	stop      *object.Method[string, none]
	terminate *object.Method[string, none]
}

// none stands for no argument or no answer.
type none struct{}

// New defines a continuous job. A mistake in c is returned by object.Open.
func New[S any](c Config[S]) *Job[S] {
	j := &Job[S]{config: c}
	class := object.Define(c.Name, func(ctx context.Context, st *object.State) (*instance[S], error) {
		return load(ctx, st, j)
	}, c.class())
	j.Class = class
	j.start = object.Handle(class, "start", (*instance[S]).start)
	j.trigger = object.Handle(class, "trigger", (*instance[S]).trigger)
	j.status = object.Handle(class, "status", (*instance[S]).status)
	j.state = object.Handle(class, "state", (*instance[S]).state)
	j.pause = object.Handle(class, "pause", (*instance[S]).pause)
	j.resume = object.Handle(class, "resume", (*instance[S]).resume)
	j.stop = object.Handle(class, "stop", (*instance[S]).stop)
	j.terminate = object.Handle(class, "terminate", (*instance[S]).terminate)
	class.Reject(c.Validate())
	return j
}

// Scheduled reports whether the definition has a schedule. Without one a job runs when
// it is started, triggered, or told by its last run to run again, and rests between
// without an alarm.
func (j *Job[S]) Scheduled() bool { return j.config.Schedule != (jobs.Schedule{}) }

// Started is the answer to a Start.
type Started struct {
	Created bool        `json:"created"` // false: the job was there, and nothing was changed
	Status  jobs.Status `json:"status"`  // of the job as it is now
}

// Start makes the job called id with its first state, and begins its first run
// unless the Config says otherwise. If there is such a job, in whatever status,
// nothing changes and Started.Created is false (C1).
//
// A state that has a method Validate() error, or cannot be encoded, is refused
// with a jobs.ErrInvalid; then nothing was stored (J4).
func (j *Job[S]) Start(ctx context.Context, from object.Caller, id string, state S) (Started, error) {
	return j.start.Call(ctx, from, id, state)
}

// Trigger begins a run now, and the schedule counts from now on (C1). A run that
// waits for a retry is tried now, with all its attempts before it again. While a
// run executes, another follows when it has ended.
func (j *Job[S]) Trigger(ctx context.Context, from object.Caller, id string) error {
	_, err := j.trigger.Call(ctx, from, id, none{})
	return err
}

// Status is what is known of a job.
type Status struct {
	Meta jobs.Meta `json:"meta"`
	// Due is when the next run, or the next attempt of this one, is due by what
	// is stored now. It is zero while a run executes, and if none is due.
	Due time.Time `json:"due,omitzero"`
	// Waiting says that the run is due and waits for Config.Concurrency or
	// Config.StartRate.
	Waiting bool `json:"waiting,omitempty"`
}

// Status tells how the job is. It does not wait for a run that executes.
func (j *Job[S]) Status(ctx context.Context, from object.Caller, id string) (Status, error) {
	return j.status.Call(ctx, from, id, none{})
}

// State returns the state as the last run that succeeded left it.
func (j *Job[S]) State(ctx context.Context, from object.Caller, id string) (S, error) {
	return j.state.Call(ctx, from, id, none{})
}

// Pause keeps everything and lets no run begin until Resume. A run that executes
// ends first. Nothing changes if the job is paused already.
func (j *Job[S]) Pause(ctx context.Context, from object.Caller, id string) error {
	_, err := j.pause.Call(ctx, from, id, none{})
	return err
}

// Resume lets a job go on that is paused, stopped or failed. What is overdue then
// is handled as Config.Missed says. Nothing changes if the job goes on already.
func (j *Job[S]) Resume(ctx context.Context, from object.Caller, id string) error {
	_, err := j.resume.Call(ctx, from, id, none{})
	return err
}

// Stop ends the job and keeps its state; the reason is stored. A run that executes
// is cancelled, and what it made is dropped.
func (j *Job[S]) Stop(ctx context.Context, from object.Caller, id, reason string) error {
	_, err := j.stop.Call(ctx, from, id, reason)
	return err
}

// Terminate removes the job: its state and its alarm, in one batch with the event
// that tells of it. A run that executes is cancelled. The id may start again (J10).
func (j *Job[S]) Terminate(ctx context.Context, from object.Caller, id, reason string) error {
	_, err := j.terminate.Call(ctx, from, id, reason)
	return err
}

// Rearm makes a definition that asks for earlier times count for all jobs of it, also
// for those that wait and are not in memory; see jobs.Rearm.
func (j *Job[S]) Rearm(ctx context.Context, h *object.Host, o jobs.RearmOptions) (jobs.Rearmed, error) {
	return jobs.Rearm(ctx, h, j.Name(), o)
}

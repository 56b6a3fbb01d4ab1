package continuous

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// Job is a continuous job. Make it once, at package level, and pass it to
// object.Open as a Definition. Each id names one object with a schedule and a
// state of its own.
//
// All methods are safe for concurrent use. from is a *object.Host in a program,
// or the *object.State, Task, Run or Flush of the code that calls. All methods
// but Start return jobs.ErrNotFound if there is no such job. A method that the
// job's status does not allow returns a *jobs.MoveError, which is a
// jobs.ErrIllegalMove, and changes nothing.
//
// With the Outbox of a State as from, all methods but Status and State happen if and only
// if the turn commits, a little later. If the job refuses one then, it becomes a dead
// letter of the job's object. Status and State return object.ErrNeedsAnswer.
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

// none stands for no argument or no result.
type none struct{}

// New makes a continuous job. It does not fail: object.Open returns the
// mistakes in c.
func New[S any](c Config[S]) *Job[S] {
	j := &Job[S]{config: c}
	class := object.Define(c.Name, func(ctx context.Context, st *object.State) (*instance[S], error) {
		return load(ctx, st, j)
	}, c.class())
	j.Class = class
	nothing, noReason := object.Sent(func(none) none { return none{} }), object.Sent(func(string) none { return none{} })
	j.start = object.Handle(class, "start", (*instance[S]).start, object.Sent(func(S) Started { return Started{Sent: true} }))
	j.trigger = object.Handle(class, "trigger", (*instance[S]).trigger, nothing)
	j.status = object.Handle(class, "status", (*instance[S]).status)
	j.state = object.Handle(class, "state", (*instance[S]).state)
	j.pause = object.Handle(class, "pause", (*instance[S]).pause, nothing)
	j.resume = object.Handle(class, "resume", (*instance[S]).resume, nothing)
	j.stop = object.Handle(class, "stop", (*instance[S]).stop, noReason)
	j.terminate = object.Handle(class, "terminate", (*instance[S]).terminate, noReason)
	class.Reject(c.Validate())
	return j
}

// Scheduled reports whether the definition has a schedule. A job without one
// runs when it is started, when it is triggered, and when its last run called
// NextAt; between runs it has no alarm.
func (j *Job[S]) Scheduled() bool { return j.config.Schedule != (jobs.Schedule{}) }

// Started is the answer of Start.
type Started struct {
	Created bool        `json:"created"` // false if the job existed; then nothing was changed
	Status  jobs.Status `json:"status"`  // of the job now
	// Sent is true if from was the Outbox of a State. The other fields are zero then. The
	// job exists once the turn has committed, unless its first state is refused.
	Sent bool `json:"sent,omitempty"`
}

// Start creates the job with the given id and its first state, and begins its
// first run unless Config.StartLater or Config.StartPaused is set. If the job
// exists, with any status, nothing changes and Started.Created is false (C1).
// So a program may call Start for all its jobs whenever it begins.
//
// If the state has a method Validate() error that fails, or if it cannot be
// encoded, Start returns a jobs.ErrInvalid and stores nothing (J4).
func (j *Job[S]) Start(ctx context.Context, from object.Caller, id string, state S) (Started, error) {
	return j.start.Call(ctx, from, id, state)
}

// Trigger begins a run now, and the schedule counts from now on (C1). If a run
// waits for a retry, it is tried now, with fresh attempts. If a run is
// executing, another one follows it.
func (j *Job[S]) Trigger(ctx context.Context, from object.Caller, id string) error {
	_, err := j.trigger.Call(ctx, from, id, none{})
	return err
}

// Status is the answer of Job.Status.
type Status struct {
	Meta jobs.Meta `json:"meta"`
	// Due is when the next run, or the next attempt at this one, is due. It is
	// zero while a run executes and if none is due.
	Due time.Time `json:"due,omitzero"`
	// Waiting means that the run is due and waits for Config.Concurrency or
	// Config.StartRate.
	Waiting bool `json:"waiting,omitempty"`
}

// Status returns the status of the job and when it runs next. It does not wait
// for a run that executes.
func (j *Job[S]) Status(ctx context.Context, from object.Caller, id string) (Status, error) {
	return j.status.Call(ctx, from, id, none{})
}

// State returns the state that the last successful run left.
func (j *Job[S]) State(ctx context.Context, from object.Caller, id string) (S, error) {
	return j.state.Call(ctx, from, id, none{})
}

// Pause begins no run until Resume. A run that executes ends first. Pausing a
// paused job changes nothing.
func (j *Job[S]) Pause(ctx context.Context, from object.Caller, id string) error {
	_, err := j.pause.Call(ctx, from, id, none{})
	return err
}

// Resume lets a paused, stopped or failed job continue. Config.Missed says how
// it handles runs that became due meanwhile. For any other status it changes
// nothing.
func (j *Job[S]) Resume(ctx context.Context, from object.Caller, id string) error {
	_, err := j.resume.Call(ctx, from, id, none{})
	return err
}

// Stop ends the job but keeps its state and stores the reason. Resume starts it
// again. A run that executes is cancelled and its changes are discarded.
func (j *Job[S]) Stop(ctx context.Context, from object.Caller, id, reason string) error {
	_, err := j.stop.Call(ctx, from, id, reason)
	return err
}

// Terminate deletes the job: its state and its alarm, in one batch with an
// event that has the reason. A run that executes is cancelled. Start can use
// the id again (J10).
func (j *Job[S]) Terminate(ctx context.Context, from object.Caller, id, reason string) error {
	_, err := j.terminate.Call(ctx, from, id, reason)
	return err
}

// Rearm applies a definition with earlier times to all existing jobs, also to
// those that are not in memory; see engine.Rearm. For example, call it once after
// a deploy that shortens Config.Schedule.
func (j *Job[S]) Rearm(ctx context.Context, h *object.Host, o jobs.RearmOptions) (jobs.Rearmed, error) {
	return engine.Rearm(ctx, h, j.Name(), o)
}

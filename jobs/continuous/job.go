package continuous

import (
	"context"
	"reflect"
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
	*object.Class[instance]
	control
	config Config[S]
	reader engine.Reader[S]

	start call[S, Started]
	state call[none, S]
}

// control has the methods of a Job that do not need the type of its state. The compiler makes the code of a Job again for
// each S, in each package that uses one, so a Job itself has only what needs it. The methods
// here are not inlined, because each Job has wrappers of them.
type control struct{ d *definition }

// definition is a Job without its type.
type definition struct {
	untyped
	class *object.Class[instance]
	calls calls
	// run makes one execution of a run with a stored state of a version.
	run func(ctx context.Context, in *instance, x engine.Execution, stored []byte, version string) (engine.Result, error)
}

// calls are the methods of an instance that do not need the type of the state. They are functions, because the compiler
// would make an object.Method again in each package to whose types it belongs.
type calls struct {
	trigger, pause, resume call[none, none]
	status                 call[none, Status]
	stop, terminate        call[string, none]
}

// call is what object.HandleCall returns.
type call[A, R any] = func(ctx context.Context, from object.Caller, id string, arg A, opts ...object.CallOption) (R, error)

// none stands for no argument or no result.
type none struct{}

// New makes a continuous job. It does not fail: object.Open returns the
// mistakes in c.
func New[S any](c Config[S]) *Job[S] {
	d := define(c.untyped())
	j := &Job[S]{Class: d.class, control: control{d}, config: c, reader: c.reader()}
	d.run = j.run
	j.start = object.HandleCall(d.class, "start", func(in *instance, ctx context.Context, state S) (Started, error) {
		if in.job.Exists() {
			return Started{Status: in.job.Meta().Status}, nil
		}
		return in.start(ctx, state, reflect.TypeFor[S]())
	}, object.Sent(func(S) Started { return Started{Sent: true} }))
	j.state = object.HandleCall(d.class, "state", func(in *instance, ctx context.Context, _ none) (state S, err error) {
		stored, err := in.stored(ctx)
		if stored != nil && err == nil {
			err = in.damaged(j.reader.Read(in.st.Driver().Codec(), in.cursor.StateVersion, stored, &state))
		}
		return state, err
	})
	return j
}

// define makes the class of a job with the methods that do not need the type of its state.
func define(c *untyped) *definition {
	d := &definition{untyped: *c}
	d.class = object.Define(c.Name, func(ctx context.Context, st *object.State) (*instance, error) {
		return load(ctx, st, d)
	}, c.class())
	nothing, noReason := object.Sent(func(none) none { return none{} }), object.Sent(func(string) none { return none{} })
	d.calls = calls{
		trigger:   object.HandleCall(d.class, "trigger", (*instance).trigger, nothing),
		status:    object.HandleCall(d.class, "status", (*instance).status),
		pause:     object.HandleCall(d.class, "pause", (*instance).pause, nothing),
		resume:    object.HandleCall(d.class, "resume", (*instance).resume, nothing),
		stop:      object.HandleCall(d.class, "stop", (*instance).stop, noReason),
		terminate: object.HandleCall(d.class, "terminate", (*instance).terminate, noReason),
	}
	d.class.Reject(c.validate())
	return d
}

// Scheduled reports whether the definition has a schedule. A job without one
// runs when it is started, when it is triggered, and when its last run called
// NextAt; between runs it has no alarm.
//
//go:noinline
func (j *control) Scheduled() bool { return j.d.Schedule != (jobs.Schedule{}) }

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
	return j.start(ctx, from, id, state)
}

// Trigger begins a run now, and the schedule counts from now on (C1). If a run
// waits for a retry, it is tried now, with fresh attempts. If a run is
// executing, another one follows it.
//
//go:noinline
func (j *control) Trigger(ctx context.Context, from object.Caller, id string) error {
	_, err := j.d.calls.trigger(ctx, from, id, none{})
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
//
//go:noinline
func (j *control) Status(ctx context.Context, from object.Caller, id string) (Status, error) {
	return j.d.calls.status(ctx, from, id, none{})
}

// State returns the state that the last successful run left.
func (j *Job[S]) State(ctx context.Context, from object.Caller, id string) (S, error) {
	return j.state(ctx, from, id, none{})
}

// Pause begins no run until Resume. A run that executes ends first. Pausing a
// paused job changes nothing.
//
//go:noinline
func (j *control) Pause(ctx context.Context, from object.Caller, id string) error {
	_, err := j.d.calls.pause(ctx, from, id, none{})
	return err
}

// Resume lets a paused, stopped or failed job continue. Config.Missed says how
// it handles runs that became due meanwhile. For any other status it changes
// nothing.
//
//go:noinline
func (j *control) Resume(ctx context.Context, from object.Caller, id string) error {
	_, err := j.d.calls.resume(ctx, from, id, none{})
	return err
}

// Stop ends the job but keeps its state and stores the reason. Resume starts it
// again. A run that executes is cancelled and its changes are discarded.
//
//go:noinline
func (j *control) Stop(ctx context.Context, from object.Caller, id, reason string) error {
	_, err := j.d.calls.stop(ctx, from, id, reason)
	return err
}

// Terminate deletes the job: its state and its alarm, in one batch with an
// event that has the reason. A run that executes is cancelled. Start can use
// the id again (J10).
//
//go:noinline
func (j *control) Terminate(ctx context.Context, from object.Caller, id, reason string) error {
	_, err := j.d.calls.terminate(ctx, from, id, reason)
	return err
}

// Rearm applies a definition with earlier times to all existing jobs, also to
// those that are not in memory; see engine.Rearm. For example, call it once after
// a deploy that shortens Config.Schedule.
//
//go:noinline
func (j *control) Rearm(ctx context.Context, h *object.Host, o jobs.RearmOptions) (jobs.Rearmed, error) {
	return engine.Rearm(ctx, h, j.d.Name, o)
}

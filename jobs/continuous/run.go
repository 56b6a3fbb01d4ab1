package continuous

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Run is one execution of one run, as Config.Run gets it. All but State, Attempt,
// Recovering and LastError is the same in every execution of the run. It belongs
// to the call of Config.Run.
//
// A Run is an object.Caller: work that calls other objects passes it as from, and
// Key as the idempotency key:
//
//	_, err := Charge.Call(ctx, run, "alice", 5, object.Idempotent(run.Key, 0))
type Run[S any] struct {
	ID string // of the job
	// State is a private copy of the state after the last run that succeeded.
	// What Config.Run makes of it is stored in the end batch if it returns nil.
	State S
	// Number counts the runs from 1. It is that of the last committed run + 1.
	Number uint64
	// Key names this run among all of the store, for use as an idempotency key
	// outside. No other run has it, not even after the job was terminated and
	// started again.
	Key string
	// Scheduled is when the run was due; in a run after a stop it may be long
	// ago.
	Scheduled time.Time

	Attempt    int    // counts the executions of this run from 1
	Recovering bool   // the execution before was cut off by a crash or a stop
	LastError  string // of the last execution that failed

	job    *Job[S]
	st     *object.State
	result jobs.Result
}

// Job returns the definition that the run belongs to. Config.Run uses it to start or
// trigger jobs of its own definition; one that names the package-level variable of its
// own definition does not compile, because Go calls that an initialization cycle:
//
//	err := run.Job().Trigger(ctx, run, "another")
//
// A run that is cut off by a crash makes such a call again when it is repeated. Job is
// nil in a Run that a program has made by itself.
func (r *Run[S]) Job() *Job[S] { return r.job }

// Invoke makes a call of the job's object to another.
func (r *Run[S]) Invoke(ctx context.Context, q *object.Request) error {
	return r.st.Invoke(ctx, q)
}

// Sleep waits for d on the clock of the host, or until ctx ends, and returns the
// cause of that. In a simulation d is virtual time, so that work which waits
// can be tested with package harness.
func (r *Run[S]) Sleep(ctx context.Context, d time.Duration) error { return r.st.Seams().Sleep(ctx, d) }

// NextAt makes the next run due at the given time, once, in place of the
// schedule, if Config.Run returns nil. A time in the past means at once.
func (r *Run[S]) NextAt(at time.Time) { r.result.NextAt = at.Round(0).UTC() }

// Stop ends the job after this run and keeps its state, if Config.Run returns
// nil. The reason is stored.
func (r *Run[S]) Stop(reason string) { r.result.End, r.result.Reason = jobs.Stop, reason }

// Terminate removes the job with this run, if Config.Run returns nil. The reason
// is told by the last event.
func (r *Run[S]) Terminate(reason string) { r.result.End, r.result.Reason = jobs.Terminate, reason }

// work is the run on the state as it is stored. It decodes and encodes beside the
// turns: a state that cannot be encoded fails the run and not the job.
func (in *instance[S]) work(stored []byte) jobs.Work {
	codec, storage, version := in.st.Codec(), in.st.Storage(), in.cursor.StateVersion
	return func(ctx context.Context, x jobs.Execution) (jobs.Result, error) {
		run := &Run[S]{
			ID: in.st.Name(), Number: x.Run.Number, Key: x.Key, Scheduled: x.Run.Scheduled,
			Attempt: x.Run.Attempt, Recovering: x.Run.Recovering, LastError: x.Run.LastError, job: in.job, st: in.st,
		}
		if err := in.read(stored, version, &run.State); err != nil {
			return jobs.Result{}, err
		}
		if err := in.config.Run(ctx, run); err != nil {
			return jobs.Result{}, err
		}
		value, err := codec.Encode(run.State)
		if err != nil {
			return jobs.Result{}, fmt.Errorf("continuous: encode state: %w", err)
		}
		res := run.result
		res.Size = len(value)
		res.Store = func(ctx context.Context) error { return storage.PutBytes(ctx, stateKey, value) }
		return res, nil
	}
}

package continuous

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// Run is the run that Config.Run executes; it must not be used after Config.Run
// has returned. All fields but State, Attempt, Recovering and LastError are the
// same in each execution of the run, until it succeeds or is given up.
//
// A Run is an object.Caller: pass it as from to call other objects, and pass
// its Key as the idempotency key:
//
//	_, err := Charge.Call(ctx, run, "alice", 5, object.Idempotent(run.Key, 0))
type Run[S any] struct {
	ID string // of the job
	// State is a private copy of the state that the last successful run left.
	// If Config.Run returns nil, its changes are stored in the batch that ends
	// the run.
	State S
	// Number counts the runs that succeed, from 1: it is one more than that of
	// the last successful run. A run that was given up leaves its Number and
	// Key to the next run, because it has not changed the state.
	Number uint64
	// Key identifies this run in the whole store and is never used again, not
	// even after the job was terminated and started again. Pass it to other
	// systems as an idempotency key.
	Key string
	// Scheduled is when the run was due. After a downtime that may be long ago.
	Scheduled time.Time

	Attempt    int    // counts the executions of this run from 1
	Recovering bool   // a crash or a shutdown cut off the execution before
	LastError  string // of the last failed execution

	job    *Job[S]
	st     *object.State
	result engine.Result
}

// Job returns the run's own definition, so that Config.Run can start or trigger
// other jobs of it:
//
//	err := run.Job().Trigger(ctx, run, "another")
//
// A Config.Run that names the package-level variable of its own definition does
// not compile, because Go reports an initialization cycle. A run that is
// repeated after a crash makes the call again. Job returns nil for a Run that
// the program made itself.
func (r *Run[S]) Job() *Job[S] { return r.job }

// Invoke makes a Run an object.Caller.
func (r *Run[S]) Invoke(ctx context.Context, q *object.Request) error {
	return r.st.Invoke(ctx, q)
}

// Sleep waits for d on the clock of the host, or until ctx ends, and returns
// the cause of that. In a simulation (package harness) d is virtual time, so
// that tests of waiting work are fast.
func (r *Run[S]) Sleep(ctx context.Context, d time.Duration) error {
	return r.st.Driver().Seams().Sleep(ctx, d)
}

// NextAt makes the next run due at the given time instead of by the schedule,
// once, if Config.Run returns nil. A time in the past means at once.
func (r *Run[S]) NextAt(at time.Time) { r.result.NextAt = at.Round(0).UTC() }

// Stop ends the job after this run, if Config.Run returns nil. The state is
// kept and the reason is stored.
func (r *Run[S]) Stop(reason string) { r.result.Wish, r.result.Reason = engine.Stop, reason }

// Terminate deletes the job after this run, if Config.Run returns nil. The last
// event has the reason.
func (r *Run[S]) Terminate(reason string) { r.result.Wish, r.result.Reason = engine.Terminate, reason }

// work returns the work of a run, given the stored state. It decodes and
// encodes outside of turns, so that a state that cannot be encoded fails the
// run and not the job.
func (in *instance) work(stored []byte) engine.Work {
	version := in.cursor.StateVersion
	return func(ctx context.Context, x engine.Execution) (engine.Result, error) {
		return in.d.run(ctx, in, x, stored, version)
	}
}

// run decodes the stored state, calls Config.Run, and encodes the state that it leaves.
func (j *Job[S]) run(ctx context.Context, in *instance, x engine.Execution, stored []byte, version string) (engine.Result, error) {
	run := &Run[S]{job: j, st: in.st}
	run.ID, run.Number, run.Key, run.Scheduled = in.st.Name(), x.Run.Number, x.Key, x.Run.Scheduled
	run.Attempt, run.Recovering, run.LastError = x.Run.Attempt, x.Run.Recovering, x.Run.LastError
	if err := in.damaged(j.reader.Read(in.st.Driver().Codec(), version, stored, &run.State)); err != nil {
		return engine.Result{}, err
	}
	if err := j.config.Run(ctx, run); err != nil {
		return engine.Result{}, err
	}
	return in.leaves(run.State, run.result)
}

// leaves returns the result of a run, whose end stores the state.
func (in *instance) leaves(state any, res engine.Result) (engine.Result, error) {
	value, err := in.st.Driver().Codec().Encode(state)
	if err != nil {
		return engine.Result{}, fmt.Errorf("continuous: encode state: %w", err)
	}
	storage := in.st.Storage()
	res.Size = len(value)
	res.Store = func(ctx context.Context) error { return storage.PutBytes(ctx, stateKey, value) }
	return res, nil
}

package continuous

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// instance is a continuous job in memory. Its methods run in turns of the
// object, one at a time, so it has no mutex.
type instance[S any] struct {
	definition *Job[S]
	config     *Config[S]
	st         *object.State
	job        *engine.Job
	reader     engine.Reader[S]
	cursor     cursor // the stored row
}

// cursor is a jobs.Cursor together with the Version of the stored state.
type cursor struct {
	Anchor       time.Time `json:"anchor,omitzero"`
	Last         time.Time `json:"last,omitzero"`
	StateVersion string    `json:"stateVersion,omitempty"`
}

// inSchedule is the part of c that a jobs.Schedule understands.
func (c cursor) inSchedule() jobs.Cursor { return jobs.Cursor{Anchor: c.Anchor, Last: c.Last} }

// Keys of the object, besides jobs.MetaKey.
const (
	stateKey  = "state"  // S in the host's codec
	cursorKey = "cursor" // cursor as JSON
)

// Causes of a run that does not come from the schedule.
const (
	causeStart   = "start"
	causeTrigger = "trigger"
)

// load is the constructor: it reads the cursor and makes the job, which sets
// the alarm.
func load[S any](ctx context.Context, st *object.State, j *Job[S]) (*instance[S], error) {
	c := &j.config
	in := &instance[S]{definition: j, config: c, st: st, reader: c.reader()}
	_, err := st.Storage().GetInto(ctx, cursorKey, &in.cursor)
	if err != nil {
		return nil, err
	}
	in.job, err = engine.NewJob(ctx, st, engine.JobOptions{
		Options: c.execution(), Type: "continuous", Version: c.Version,
		Exhausted: c.Exhausted, OnExhausted: c.OnExhausted, Retention: c.Retention,
	}, in)
	return in, err
}

// Alarm passes each wake-up to the job.
func (in *instance[S]) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return in.job.Alarm(ctx, info)
}

// Next returns when the schedule asks for a run, for the engine.
func (in *instance[S]) Next() time.Time {
	return in.config.Schedule.Due(in.cursor.inSchedule(), in.st.ID().String())
}

// Prepare returns the work of a run; the engine calls it in the turn that
// begins an execution. The first attempt of a run also takes the due occurrence
// of the schedule. Without one the run needs a cause of its own, for example a
// Trigger.
func (in *instance[S]) Prepare(ctx context.Context, run jobs.Run) (engine.Work, error) {
	stored, _, err := in.st.Storage().Get(ctx, stateKey)
	if err != nil {
		return nil, err
	}
	if run.Attempt == 0 {
		wanted, err := in.take(ctx)
		if err != nil || !wanted && run.Cause == "" {
			return nil, err
		}
	}
	return in.work(stored), nil
}

// take moves the cursor past the due occurrences and reports whether
// Config.Missed asks for a run. A triggered run takes a due occurrence with it,
// so that the schedule does not run again right after it.
func (in *instance[S]) take(ctx context.Context) (run bool, err error) {
	now := in.job.Now()
	if due := in.Next(); due.IsZero() || due.After(now) {
		return false, nil
	}
	moved, _, run := in.config.Schedule.Take(in.cursor.inSchedule(), in.st.ID().String(), now, in.config.Missed)
	return run, in.move(ctx, moved, in.cursor.StateVersion)
}

// Ended moves the cursor after a run has ended, in the batch that ends it. If
// the run succeeded, that batch also has its state, in the form of this
// Version.
func (in *instance[S]) Ended(ctx context.Context, _ engine.Execution, out engine.Outcome) error {
	version := in.cursor.StateVersion
	if out.Kind == engine.Done || out.Kind == engine.Quit {
		version = in.config.Version
	}
	return in.move(ctx, in.config.Schedule.Ended(in.cursor.inSchedule(), in.job.Now()), version)
}

// move stores the cursor with the Version of the stored state, if either
// changed.
func (in *instance[S]) move(ctx context.Context, to jobs.Cursor, stateVersion string) error {
	c := cursor{to.Anchor, to.Last, stateVersion}
	if c == in.cursor {
		return nil
	}
	if err := in.st.Storage().Put(ctx, cursorKey, c); err != nil {
		return err
	}
	in.cursor = c
	return nil
}

// start creates the job in one batch: its state, metadata, cursor and first
// alarm. It changes nothing if the job exists.
func (in *instance[S]) start(ctx context.Context, state S) (Started, error) {
	if in.job.Exists() {
		return Started{Status: in.job.Meta().Status}, nil
	}
	value, err := in.encode(state)
	if err != nil {
		return Started{}, err
	}
	err = in.job.Turn(ctx, func(ctx context.Context) error {
		if err := in.st.Storage().PutBytes(ctx, stateKey, value); err != nil {
			return err
		}
		if err := in.job.Create(ctx); err != nil {
			return err
		}
		if err := in.move(ctx, jobs.StartCursor(in.job.Now()), in.config.Version); err != nil {
			return err
		}
		if !in.config.StartLater {
			if err := in.job.RunNow(ctx, causeStart); err != nil {
				return err
			}
		}
		if in.config.StartPaused {
			return in.job.Pause(ctx)
		}
		return nil
	})
	return Started{Created: err == nil, Status: in.job.Meta().Status}, err
}

// encode validates the first state of a job and encodes it (J4).
func (in *instance[S]) encode(state S) ([]byte, error) {
	for _, v := range []any{state, &state} {
		if v, ok := v.(interface{ Validate() error }); ok {
			if err := v.Validate(); err != nil {
				return nil, fmt.Errorf("%w: %s: state: %w", jobs.ErrInvalid, in.st.ID(), err)
			}
			break
		}
	}
	value, err := in.st.Driver().Codec().Encode(state)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: encode state: %w", jobs.ErrInvalid, in.st.ID(), err)
	}
	return value, nil
}

// trigger makes a run due now. The schedule counts from now on.
func (in *instance[S]) trigger(ctx context.Context, _ none) (none, error) {
	return none{}, in.job.Turn(ctx, func(ctx context.Context) error {
		if err := in.job.RunNow(ctx, causeTrigger); err != nil {
			return err
		}
		return in.move(ctx, jobs.StartCursor(in.job.Now()), in.cursor.StateVersion)
	})
}

// status answers Job.Status from memory.
func (in *instance[S]) status(context.Context, none) (Status, error) {
	if err := in.existing(); err != nil {
		return Status{}, err
	}
	return Status{Meta: in.job.Meta(), Due: in.job.NextRun(), Waiting: in.job.Waiting()}, nil
}

// state decodes the stored state.
func (in *instance[S]) state(ctx context.Context, _ none) (state S, err error) {
	if err := in.existing(); err != nil {
		return state, err
	}
	stored, ok, err := in.st.Storage().Get(ctx, stateKey)
	if ok && err == nil {
		err = in.read(stored, in.cursor.StateVersion, &state)
	}
	return state, err
}

// read decodes or migrates a stored state. It is safe for concurrent use with
// turns.
func (in *instance[S]) read(stored []byte, version string, state *S) error {
	if bad := in.reader.Read(in.st.Driver().Codec(), version, stored, state); bad != nil {
		return bad.Of(in.st.ID(), "state")
	}
	return nil
}

func (in *instance[S]) pause(ctx context.Context, _ none) (none, error) {
	return none{}, in.job.Pause(ctx)
}

func (in *instance[S]) resume(ctx context.Context, _ none) (none, error) {
	return none{}, in.job.Resume(ctx)
}

func (in *instance[S]) stop(ctx context.Context, reason string) (none, error) {
	return none{}, in.job.Stop(ctx, reason)
}

func (in *instance[S]) terminate(ctx context.Context, reason string) (none, error) {
	return none{}, in.job.Terminate(ctx, reason)
}

// existing returns jobs.ErrNotFound if the object has no job.
func (in *instance[S]) existing() error {
	if !in.job.Exists() {
		return fmt.Errorf("%w: %s", jobs.ErrNotFound, in.st.ID())
	}
	return nil
}

package continuous

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// instance is a continuous job in memory. Its methods run in turns of the
// object, one at a time, so it has no mutex.
type instance struct {
	d      *definition
	st     *object.State
	job    *engine.Job
	cursor cursor // the stored row
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
func load(ctx context.Context, st *object.State, d *definition) (*instance, error) {
	c := &d.untyped
	in := &instance{d: d, st: st}
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
func (in *instance) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return in.job.Alarm(ctx, info)
}

// Next returns when the schedule asks for a run, for the engine.
func (in *instance) Next() time.Time {
	return in.d.Schedule.Due(in.cursor.inSchedule(), in.st.ID().String())
}

// Prepare returns the work of a run; the engine calls it in the turn that
// begins an execution. The first attempt of a run also takes the due occurrence
// of the schedule. Without one the run needs a cause of its own, for example a
// Trigger.
func (in *instance) Prepare(ctx context.Context, run jobs.Run) (engine.Work, error) {
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
func (in *instance) take(ctx context.Context) (run bool, err error) {
	now := in.job.Now()
	if due := in.Next(); due.IsZero() || due.After(now) {
		return false, nil
	}
	moved, _, run := in.d.Schedule.Take(in.cursor.inSchedule(), in.st.ID().String(), now, in.d.Missed)
	return run, in.move(ctx, moved, in.cursor.StateVersion)
}

// Ended moves the cursor after a run has ended, in the batch that ends it. If
// the run succeeded, that batch also has its state, in the form of this
// Version.
func (in *instance) Ended(ctx context.Context, _ engine.Execution, out engine.Outcome) error {
	version := in.cursor.StateVersion
	if out.Kind == engine.Done || out.Kind == engine.Quit {
		version = in.d.Version
	}
	return in.move(ctx, in.d.Schedule.Ended(in.cursor.inSchedule(), in.job.Now()), version)
}

// move stores the cursor with the Version of the stored state, if either
// changed.
func (in *instance) move(ctx context.Context, to jobs.Cursor, stateVersion string) error {
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
// alarm. The job does not exist. t is the type S of the state.
func (in *instance) start(ctx context.Context, state any, t reflect.Type) (Started, error) {
	value, err := in.encode(state, t)
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
		if err := in.move(ctx, jobs.StartCursor(in.job.Now()), in.d.Version); err != nil {
			return err
		}
		if !in.d.StartLater {
			if err := in.job.RunNow(ctx, causeStart); err != nil {
				return err
			}
		}
		if in.d.StartPaused {
			return in.job.Pause(ctx)
		}
		return nil
	})
	return Started{Created: err == nil, Status: in.job.Meta().Status}, err
}

// validator is implemented by states that can check themselves.
type validator interface{ Validate() error }

// encode validates the first state of a job, by the method of its value or of its address, and encodes it (J4).
func (in *instance) encode(state any, t reflect.Type) ([]byte, error) {
	var err error
	if v, ok := state.(validator); ok {
		err = v.Validate()
	} else if reflect.PointerTo(t).Implements(reflect.TypeFor[validator]()) {
		address := reflect.New(t)
		address.Elem().Set(reflect.ValueOf(state))
		err = address.Interface().(validator).Validate()
		state = address.Elem().Interface()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: state: %w", jobs.ErrInvalid, in.st.ID(), err)
	}
	value, err := in.st.Driver().Codec().Encode(state)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: encode state: %w", jobs.ErrInvalid, in.st.ID(), err)
	}
	return value, nil
}

// trigger makes a run due now. The schedule counts from now on.
func (in *instance) trigger(ctx context.Context, _ none) (none, error) {
	return none{}, in.job.Turn(ctx, func(ctx context.Context) error {
		if err := in.job.RunNow(ctx, causeTrigger); err != nil {
			return err
		}
		return in.move(ctx, jobs.StartCursor(in.job.Now()), in.cursor.StateVersion)
	})
}

// status answers Job.Status from memory.
func (in *instance) status(context.Context, none) (Status, error) {
	if err := in.existing(); err != nil {
		return Status{}, err
	}
	return Status{Meta: in.job.Meta(), Due: in.job.NextRun(), Waiting: in.job.Waiting()}, nil
}

// stored returns the stored state; nil if there is none.
func (in *instance) stored(ctx context.Context) ([]byte, error) {
	if err := in.existing(); err != nil {
		return nil, err
	}
	stored, ok, err := in.st.Storage().Get(ctx, stateKey)
	if ok && stored == nil {
		stored = []byte{}
	}
	return stored, err
}

// damaged is the error of a stored state that cannot be read; nil: it can. It is safe for concurrent use with
// turns.
func (in *instance) damaged(bad *jobs.DecodeError) error {
	if bad == nil {
		return nil
	}
	return bad.Of(in.st.ID(), "state")
}

func (in *instance) pause(ctx context.Context, _ none) (none, error) {
	return none{}, in.job.Pause(ctx)
}

func (in *instance) resume(ctx context.Context, _ none) (none, error) {
	return none{}, in.job.Resume(ctx)
}

func (in *instance) stop(ctx context.Context, reason string) (none, error) {
	return none{}, in.job.Stop(ctx, reason)
}

func (in *instance) terminate(ctx context.Context, reason string) (none, error) {
	return none{}, in.job.Terminate(ctx, reason)
}

// existing returns jobs.ErrNotFound if the object has no job.
func (in *instance) existing() error {
	if !in.job.Exists() {
		return fmt.Errorf("%w: %s", jobs.ErrNotFound, in.st.ID())
	}
	return nil
}

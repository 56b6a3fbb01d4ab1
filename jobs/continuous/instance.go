package continuous

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// instance is a continuous job in memory.
type instance[S any] struct {
	job    *Job[S]
	config *Config[S]
	st     *object.State
	life   *jobs.Life
	reader jobs.Reader[S]
	cursor cursor // as stored
}

// cursor is a jobs.Cursor, and the Version that the state was stored under.
type cursor struct {
	Anchor       time.Time `json:"anchor,omitzero"`
	Last         time.Time `json:"last,omitzero"`
	StateVersion string    `json:"stateVersion,omitempty"`
}

// inSchedule is where in the schedule the job is.
func (c cursor) inSchedule() jobs.Cursor { return jobs.Cursor{Anchor: c.Anchor, Last: c.Last} }

// Keys of the object, beside jobs.MetaKey.
const (
	stateKey  = "state"  // S, by the host's codec
	cursorKey = "cursor" // cursor, as JSON
)

// Causes of a run that the schedule did not ask for.
const (
	causeStart   = "start"
	causeTrigger = "trigger"
)

// load makes an instance from what is stored, and arms it.
func load[S any](ctx context.Context, st *object.State, j *Job[S]) (*instance[S], error) {
	c := &j.config
	in := &instance[S]{job: j, config: c, st: st, reader: c.reader()}
	_, err := st.Storage().GetInto(ctx, cursorKey, &in.cursor)
	if err != nil {
		return nil, err
	}
	in.life, err = jobs.NewLife(ctx, st, jobs.LifeOptions{
		Options: c.execution(), Type: "continuous", Version: c.Version,
		Exhausted: c.Exhausted, OnExhausted: c.OnExhausted,
	}, in)
	return in, err
}

// Alarm hands each wake-up to the life of the job.
func (in *instance[S]) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return in.life.Alarm(ctx, info)
}

// Next returns when the schedule asks for a run.
func (in *instance[S]) Next() time.Time {
	return in.config.Schedule.Due(in.cursor.inSchedule(), in.st.ID().String())
}

// Prepare takes the occurrence that the run is for, and returns its work.
func (in *instance[S]) Prepare(ctx context.Context, run jobs.Run) (jobs.Work, error) {
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

// take moves the cursor over what is due, and reports whether that asks for a
// run. A run for another cause takes a due occurrence along.
func (in *instance[S]) take(ctx context.Context) (run bool, err error) {
	now := in.life.Now()
	if due := in.Next(); due.IsZero() || due.After(now) {
		return false, nil
	}
	moved, _, run := in.config.Schedule.Take(in.cursor.inSchedule(), in.st.ID().String(), now, in.config.Missed)
	return run, in.move(ctx, moved, in.cursor.StateVersion)
}

// Ended moves the cursor over a run that has ended. One that succeeded has stored
// its state in this batch.
func (in *instance[S]) Ended(ctx context.Context, _ jobs.Execution, out jobs.Outcome) error {
	version := in.cursor.StateVersion
	if out.Kind == jobs.Done || out.Kind == jobs.Quit {
		version = in.config.Version
	}
	return in.move(ctx, in.config.Schedule.Ended(in.cursor.inSchedule(), in.life.Now()), version)
}

// move stores the cursor, with the version of the state as it is stored.
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

func (in *instance[S]) start(ctx context.Context, state S) (Started, error) {
	if in.life.Exists() {
		return Started{Status: in.life.Meta().Status}, nil
	}
	value, err := in.encode(state)
	if err != nil {
		return Started{}, err
	}
	err = in.life.Turn(ctx, func(ctx context.Context) error {
		if err := in.st.Storage().PutBytes(ctx, stateKey, value); err != nil {
			return err
		}
		if err := in.life.Create(ctx); err != nil {
			return err
		}
		if err := in.move(ctx, jobs.StartCursor(in.life.Now()), in.config.Version); err != nil {
			return err
		}
		if !in.config.StartLater {
			if err := in.life.RunNow(ctx, causeStart); err != nil {
				return err
			}
		}
		if in.config.StartPaused {
			return in.life.Pause(ctx)
		}
		return nil
	})
	return Started{Created: err == nil, Status: in.life.Meta().Status}, err
}

// encode checks the first state of a job and returns its bytes (J4).
func (in *instance[S]) encode(state S) ([]byte, error) {
	for _, v := range []any{state, &state} {
		if v, ok := v.(interface{ Validate() error }); ok {
			if err := v.Validate(); err != nil {
				return nil, fmt.Errorf("%w: %s: state: %w", jobs.ErrInvalid, in.st.ID(), err)
			}
			break
		}
	}
	value, err := in.st.Codec().Encode(state)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: encode state: %w", jobs.ErrInvalid, in.st.ID(), err)
	}
	return value, nil
}

func (in *instance[S]) trigger(ctx context.Context, _ none) (none, error) {
	return none{}, in.life.Turn(ctx, func(ctx context.Context) error {
		if err := in.life.RunNow(ctx, causeTrigger); err != nil {
			return err
		}
		return in.move(ctx, jobs.StartCursor(in.life.Now()), in.cursor.StateVersion)
	})
}

func (in *instance[S]) status(context.Context, none) (Status, error) {
	if err := in.existing(); err != nil {
		return Status{}, err
	}
	return Status{Meta: in.life.Meta(), Due: in.life.NextRun(), Waiting: in.life.Waiting()}, nil
}

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

// read decodes or migrates a state as it is stored.
func (in *instance[S]) read(stored []byte, version string, state *S) error {
	if bad := in.reader.Read(in.st.Codec(), version, stored, state); bad != nil {
		return bad.Of(in.st.ID(), "state")
	}
	return nil
}

func (in *instance[S]) pause(ctx context.Context, _ none) (none, error) {
	return none{}, in.life.Pause(ctx)
}

func (in *instance[S]) resume(ctx context.Context, _ none) (none, error) {
	return none{}, in.life.Resume(ctx)
}

func (in *instance[S]) stop(ctx context.Context, reason string) (none, error) {
	return none{}, in.life.Stop(ctx, reason)
}

func (in *instance[S]) terminate(ctx context.Context, reason string) (none, error) {
	return none{}, in.life.Terminate(ctx, reason)
}

// existing is nil if there is such a job.
func (in *instance[S]) existing() error {
	if !in.life.Exists() {
		return fmt.Errorf("%w: %s", jobs.ErrNotFound, in.st.ID())
	}
	return nil
}

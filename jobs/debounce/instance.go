package debounce

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// instance is a debounce object in memory.
type instance[E, S any] struct {
	job    *Job[E, S]
	config *Config[E, S]
	limits limits
	st     *object.State
	life   *jobs.Life
	buffer buffer // as stored, with the events since
	events jobs.Reader[E]
	states jobs.Reader[S]
	fresh  jobs.Versions // of a generation that this definition begins

	// state is that of the open generation, while known; it spares Add the read.
	state S
	known bool
}

// load makes an instance from what is stored, and arms it.
func load[E, S any](ctx context.Context, st *object.State, j *Job[E, S]) (*instance[E, S], error) {
	c := &j.config
	in := &instance[E, S]{
		job: j, config: c, limits: c.limits(), st: st,
		events: c.events(), states: c.states(), fresh: jobs.Versions("").From(0, c.Version),
	}
	row, ok, err := st.Storage().Get(ctx, bufferKey)
	if err != nil {
		return nil, err
	}
	if ok {
		if in.buffer, err = decodeBuffer(row); err != nil {
			return nil, err
		}
		if in.buffer.open, err = caughtUp(ctx, st.Storage(), in.buffer.open); err != nil {
			return nil, err
		}
	}
	in.life, err = jobs.NewLife(ctx, st, jobs.LifeOptions{
		Options: c.Execution, Type: "debounce", Version: c.Version,
		Exhausted: c.Exhausted.policy(), Drops: c.Exhausted == Drop, OnExhausted: c.OnExhausted,
	}, in)
	return in, err
}

// policy is the engine's word for e. Dropping the events is this package's part.
func (e Exhausted) policy() jobs.Exhausted {
	if e == Drop {
		return jobs.Keep
	}
	return jobs.Fail
}

// Alarm hands each wake-up to the life of the job.
func (in *instance[E, S]) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return in.life.Alarm(ctx, info)
}

// Next returns when a flush is due: that of a closed generation, or else that of
// the open one.
func (in *instance[E, S]) Next() time.Time {
	if in.buffer.isClosed() {
		return in.buffer.closed.due
	}
	at, _ := in.limits.due(in.buffer.open)
	return at
}

// store makes b the buffer.
func (in *instance[E, S]) store(ctx context.Context, b buffer) error {
	var row [128]byte // most rows fit, and need no memory of their own
	if err := in.st.Storage().PutBytes(ctx, bufferKey, b.appendTo(row[:0])); err != nil {
		return err
	}
	in.buffer = b
	return nil
}

// existing is nil if there is such a job.
func (in *instance[E, S]) existing() error {
	if !in.life.Exists() {
		return fmt.Errorf("%w: %s", jobs.ErrNotFound, in.st.ID())
	}
	return nil
}

package debounce

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// instance is a debounce object in memory. Its methods run in turns of the
// object, one at a time, so it has no mutex.
type instance struct {
	d      *definition
	limits limits
	st     *object.State
	job    *engine.Job
	buffer buffer          // the stored row, brought up to date with the newest event row
	fresh  engine.Versions // of a generation that this definition begins

	// state is the state of the open generation, if known is true. It saves an
	// Add with Reduce a read.
	state any
	known bool
}

// load is the constructor: it reads the buffer and makes the job, which sets
// the alarm.
func load(ctx context.Context, st *object.State, d *definition) (*instance, error) {
	c := &d.untyped
	in := &instance{d: d, limits: c.limits(), st: st, fresh: engine.Versions("").From(0, c.Version)}
	row, ok, err := st.Storage().Get(ctx, bufferKey)
	if err != nil {
		return nil, err
	}
	if ok {
		if in.buffer, err = decodeBuffer(row); err != nil {
			return nil, err
		}
		newest, err := newestRow(ctx, st.Storage(), in.buffer.open.number)
		if err == nil {
			in.buffer.open, err = caughtUp(in.buffer.open, newest)
		}
		if err != nil {
			return nil, err
		}
	}
	in.job, err = engine.NewJob(ctx, st, engine.JobOptions{
		Options: c.execution(), Type: "debounce", Version: c.Version,
		Exhausted: c.Exhausted.policy(), Drops: c.Exhausted == Drop, OnExhausted: c.OnExhausted, Retention: c.Retention,
	}, in)
	return in, err
}

// policy translates e for the engine. Under Drop the engine keeps the job
// going, and settle discards the events.
func (e Exhausted) policy() jobs.Exhausted {
	if e == Drop {
		return jobs.Keep
	}
	return jobs.Fail
}

// Alarm passes each wake-up to the job.
func (in *instance) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return in.job.Alarm(ctx, info)
}

// Next returns when the next flush is due, for the engine: the closed
// generation comes first.
func (in *instance) Next() time.Time {
	if in.buffer.isClosed() {
		return in.buffer.closed.due
	}
	at, _ := in.limits.due(in.buffer.open)
	return at
}

// store stores b and makes it the buffer.
func (in *instance) store(ctx context.Context, b buffer) error {
	var row [128]byte // most rows fit, so that most calls allocate nothing
	if err := in.st.Storage().PutBytes(ctx, bufferKey, b.appendTo(row[:0])); err != nil {
		return err
	}
	in.buffer = b
	return nil
}

// existing returns jobs.ErrNotFound if the object has no job.
func (in *instance) existing() error {
	if !in.job.Exists() {
		return fmt.Errorf("%w: %s", jobs.ErrNotFound, in.st.ID())
	}
	return nil
}

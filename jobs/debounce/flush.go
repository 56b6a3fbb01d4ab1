package debounce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// Flush is the generation of events that Config.Flush gets. All fields but
// Attempt, Recovering and LastError are the same in each attempt.
//
// A Flush is an object.Caller: pass it as from to call other objects, and pass
// its Key as the idempotency key:
//
//	_, err := Fold.Call(ctx, f, "totals", f.State, object.Idempotent(f.Key, week))
//
// The other object must remember the key for longer than the flush may be
// retried, including the time that the process may be down.
type Flush[E, S any] struct {
	ID         string // the object's name
	Generation uint64 // counts the flushes of the object from 1
	// Key identifies this generation in the whole store and is never used
	// again, not even after the object has ended and begun anew, nor by a store
	// that was restored from a backup, unless for the same events. Pass it to
	// other systems as an idempotency key.
	Key    string
	Reason Reason    // why the flush was due
	Due    time.Time // when the flush was due
	First  time.Time // when the first event came
	Last   time.Time // when the last event came
	Count  int       // number of events
	Events []E       // without Reduce: all events in the order of their Adds; Flush may keep or change them
	State  S         // with Reduce: its result; Flush may keep or change it

	Attempt    int    // counts attempts from 1, and from 1 again after a Resume
	Recovering bool   // a crash or a shutdown cut off the attempt before
	LastError  string // of the last failed attempt

	job *Job[E, S]
	st  *object.State
}

// Job returns the flush's own definition, so that Config.Flush can add events
// to its objects:
//
//	_, err := f.Job().Add(ctx, f, "another", event, debounce.EventID(f.Key))
//
// A Config.Flush that names the package-level variable of its own definition
// does not compile, because Go reports an initialization cycle. The event needs
// an id, because a repeated flush makes the call again. Job returns nil for a
// Flush that the program made itself.
func (f *Flush[E, S]) Job() *Job[E, S] { return f.job }

// Invoke makes a Flush an object.Caller.
func (f *Flush[E, S]) Invoke(ctx context.Context, r *object.Request) error {
	return f.st.Invoke(ctx, r)
}

// Sleep waits for d on the clock of the host, or until ctx ends, and returns
// the cause of that. In a simulation (package harness) d is virtual time, so
// that tests of a waiting flush are fast.
func (f *Flush[E, S]) Sleep(ctx context.Context, d time.Duration) error {
	return f.st.Driver().Seams().Sleep(ctx, d)
}

// Kinds of the events that a debounce object emits besides those of all jobs.
// Their payload is a FlushEvent.
const (
	EventFlushed = "flushed" // exactly one for each generation that was flushed
	EventDropped = "dropped" // one for each generation that Exhausted Drop discarded
	EventCleared = "cleared" // one for each Clear that deleted events
)

// FlushEvent is the payload of the events above.
type FlushEvent struct {
	Generation uint64 `json:"generation"`
	Reason     Reason `json:"reason,omitempty"`
	Events     int    `json:"events"`
	Attempt    int    `json:"attempt,omitempty"` // the last one
	Error      string `json:"error,omitempty"`   // why the events were dropped
}

// Prepare closes the open generation, unless one is closed already, and returns
// the work that flushes it. The engine calls it in the turn that begins an
// execution. Flushes for all reasons begin here.
func (in *instance) Prepare(ctx context.Context, _ jobs.Run) (engine.Work, error) {
	b := in.buffer
	if !b.isClosed() {
		at, why := in.limits.due(b.open)
		if at.IsZero() {
			return nil, nil
		}
		b.close(at, why, in.fresh)
	}
	do, err := in.prepared(ctx, b.closed)
	if err != nil || b == in.buffer {
		return do, err
	}
	in.known = false
	return do, in.store(ctx, b)
}

// prepared returns the work that flushes g. A damaged or unfitting generation
// fails the flush, like an error of the user's function, and not the turn.
func (in *instance) prepared(ctx context.Context, g generation) (engine.Work, error) {
	err := in.fits(g)
	if err == nil {
		var stored rows
		if stored, err = readRows(ctx, in.st.Storage(), g); err == nil {
			return in.work(g, stored), nil
		}
	}
	if errors.Is(err, errDamaged) || errors.Is(err, jobs.ErrInvalid) {
		return failing(err), nil
	}
	return nil, err
}

// failing returns work that fails with err.
func failing(err error) engine.Work {
	return func(context.Context, engine.Execution) (engine.Result, error) { return engine.Result{}, err }
}

// work returns the work that flushes a generation. Each attempt decodes the
// rows anew, so that it sees no change that a failed attempt made to its
// events.
func (in *instance) work(g generation, stored rows) engine.Work {
	key := in.key(g)
	return func(ctx context.Context, x engine.Execution) (engine.Result, error) {
		return engine.Result{}, in.d.flush(ctx, in, x, g, stored, key)
	}
}

// flush is definition.flush.
func (j *Job[E, S]) flush(ctx context.Context, in *instance, x engine.Execution, g generation, stored rows, key string) error {
	events, state, err := j.read(in, g, stored)
	if err != nil {
		return err
	}
	f := &Flush[E, S]{Events: events, State: state, job: j, st: in.st}
	f.ID, f.Generation, f.Key, f.Reason, f.Due = in.st.Name(), g.number, key, g.reason, g.due
	f.First, f.Last, f.Count = g.first, g.last, g.count
	f.Attempt, f.Recovering, f.LastError = x.Run.Attempt, x.Run.Recovering, x.Run.LastError
	return j.config.Flush(ctx, f)
}

// key is Flush.Key: object, CreationID, generation and the time of its last event, because a restored store gives the
// number again, to a generation with other events.
func (in *instance) key(g generation) string {
	return fmt.Sprintf("%s/%s/%d/%d", in.st.ID(), in.job.Meta().CreationID, g.number, g.last.UnixNano())
}

// Ended handles the outcome of a flush, in the batch that ends it (D3). A
// success deletes the events, and so does giving up under Drop. A job that
// failed keeps its events for Resume.
func (in *instance) Ended(ctx context.Context, x engine.Execution, out engine.Outcome) error {
	switch {
	case !in.buffer.isClosed():
		return nil
	case out.Kind == engine.Done:
		return in.settle(ctx, EventFlushed, x.Run.Attempt, nil)
	case out.Kind == engine.GaveUp && in.job.Meta().Status != jobs.Failed:
		return in.settle(ctx, EventDropped, x.Run.Attempt, out.Err)
	}
	return nil
}

// settle deletes the closed generation, counts its events and emits an event.
func (in *instance) settle(ctx context.Context, kind string, attempt int, cause error) error {
	b := in.buffer
	g := b.closed
	if err := deleteRows(ctx, in.st.Storage(), g); err != nil {
		return err
	}
	event := FlushEvent{Generation: g.number, Reason: g.reason, Events: g.count, Attempt: attempt}
	if cause != nil {
		event.Error = engine.Shorten(cause.Error())
		b.dropped += int64(g.count)
	} else {
		b.flushed += int64(g.count)
	}
	b.forgetClosed()
	if err := in.store(ctx, b); err != nil {
		return err
	}
	return in.st.Emit(ctx, kind, event)
}

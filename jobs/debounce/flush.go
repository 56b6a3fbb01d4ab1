package debounce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Flush is one generation of events on its way out. All but Attempt, Recovering
// and LastError is the same in every attempt.
//
// A Flush is an object.Caller: a flush that updates other objects passes it as
// from, and Key as the idempotency key:
//
//	_, err := Fold.Call(ctx, f, "totals", f.State, object.Idempotent(f.Key, week))
//
// The time for which the other object remembers the key must be longer than the
// flush may be retried, with the time that the process may be down.
type Flush[E, S any] struct {
	ID         string // the object's name
	Generation uint64 // counts the flushes of the object from 1
	// Key names this generation among all of the store, and never another one,
	// not even after the object has ended and begun anew: an idempotency key
	// for what the flush does outside.
	Key    string
	Reason Reason
	Due    time.Time // when the flush was due
	First  time.Time // when the first event came
	Last   time.Time // when the last one came
	Count  int       // of events
	Events []E       // without Reduce: all events in the order of their Adds; they are the caller's
	State  S         // with Reduce: what it made of them; it is the caller's

	Attempt    int    // counts the attempts from 1, and from 1 again after a Resume
	Recovering bool   // the attempt before was cut off by a crash or a stop
	LastError  string // of the last attempt that failed

	job *Job[E, S]
	st  *object.State
}

// Job returns the definition that the flush belongs to. Config.Flush uses it to add
// events to objects of its own definition; one that names the package-level variable
// of its own definition does not compile, because Go calls that an initialization
// cycle:
//
//	_, err := f.Job().Add(ctx, f, "another", event, jobs.EventID(f.Key))
//
// A flush that is repeated makes such a call again, so the event needs an id. Job is
// nil in a Flush that a program has made by itself.
func (f *Flush[E, S]) Job() *Job[E, S] { return f.job }

// Invoke makes a call of the debounce object to another.
func (f *Flush[E, S]) Invoke(ctx context.Context, r *object.Request) error {
	return f.st.Invoke(ctx, r)
}

// Sleep waits for d on the clock of the host, or until ctx ends, and returns the
// cause of that. In a simulation d is virtual time, so that a flush which waits
// can be tested with package harness.
func (f *Flush[E, S]) Sleep(ctx context.Context, d time.Duration) error {
	return f.st.Seams().Sleep(ctx, d)
}

// Kinds of the events that a debounce object emits of itself, beside those of
// all jobs. Each has a FlushEvent.
const (
	EventFlushed = "flushed" // exactly one for each generation that was flushed, whatever the reason
	EventDropped = "dropped" // one for each generation that was given up under Exhausted Drop
	EventCleared = "cleared" // one for each Clear that discarded events
)

// FlushEvent is the payload of the events of a debounce object.
type FlushEvent struct {
	Generation uint64 `json:"generation"`
	Reason     Reason `json:"reason,omitempty"`
	Events     int    `json:"events"`
	Attempt    int    `json:"attempt,omitempty"` // the last one
	Error      string `json:"error,omitempty"`   // why the events were dropped
}

// Prepare closes the open generation, unless one is closed already, and makes the
// work that flushes it. All reasons take this path. It runs in the begin batch.
func (in *instance[E, S]) Prepare(ctx context.Context, _ jobs.Run) (jobs.Work, error) {
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

// prepared is the work that flushes g. What is wrong with g itself fails the
// flush, like an error of the user's own, and not the turn.
func (in *instance[E, S]) prepared(ctx context.Context, g generation) (jobs.Work, error) {
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

// failing is the work of a run that cannot be done.
func failing(err error) jobs.Work {
	return func(context.Context, jobs.Execution) (jobs.Result, error) { return jobs.Result{}, err }
}

// work flushes a generation. It reads the rows anew each time, so that nothing
// a failed attempt did to them is seen by the next.
func (in *instance[E, S]) work(g generation, stored rows) jobs.Work {
	key := in.key(g)
	return func(ctx context.Context, x jobs.Execution) (jobs.Result, error) {
		events, state, err := in.read(g, stored)
		if err != nil {
			return jobs.Result{}, err
		}
		return jobs.Result{}, in.config.Flush(ctx, &Flush[E, S]{
			ID: in.st.Name(), Generation: g.number, Key: key,
			Reason: g.reason, Due: g.due, First: g.first, Last: g.last, Count: g.count,
			Events: events, State: state,
			Attempt: x.Run.Attempt, Recovering: x.Run.Recovering, LastError: x.Run.LastError,
			job: in.job, st: in.st,
		})
	}
}

// key names a generation of this life of the object.
func (in *instance[E, S]) key(g generation) string {
	return fmt.Sprintf("%s/%s/%d", in.st.ID(), in.life.Meta().Life, g.number)
}

// Ended settles the closed generation in the end batch of its flush (D3): after a
// success its events go, and after giving up as the configuration says. A job
// that failed keeps them for Resume.
func (in *instance[E, S]) Ended(ctx context.Context, x jobs.Execution, out jobs.Outcome) error {
	switch {
	case !in.buffer.isClosed():
		return nil
	case out.Kind == jobs.Done:
		return in.settle(ctx, EventFlushed, x.Run.Attempt, nil)
	case out.Kind == jobs.GaveUp && in.life.Meta().Status != jobs.Failed:
		return in.settle(ctx, EventDropped, x.Run.Attempt, out.Err)
	}
	return nil
}

// settle removes the closed generation, and tells of it.
func (in *instance[E, S]) settle(ctx context.Context, kind string, attempt int, cause error) error {
	b := in.buffer
	g := b.closed
	if err := deleteRows(ctx, in.st.Storage(), g); err != nil {
		return err
	}
	event := FlushEvent{Generation: g.number, Reason: g.reason, Events: g.count, Attempt: attempt}
	if cause != nil {
		event.Error = jobs.Shorten(cause.Error())
		b.dropped += int64(g.count)
	} else {
		b.flushed += int64(g.count)
	}
	b.drop()
	if err := in.store(ctx, b); err != nil {
		return err
	}
	return in.st.Emit(ctx, kind, event)
}

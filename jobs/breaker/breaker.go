package breaker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// ErrOpen is the error of Do while the breaker is open, or half open with all its probes under
// way. The function did not run. A run of a job or a task that returns it is tried again when
// the breaker may let it through, and no attempt is counted; a message
// waits in its queue if its handler returns it.
var ErrOpen = errors.New("the breaker is open")

// Breaker is a class of circuit breakers, one object for each dependency. Make it once, at
// package level, and pass it to object.Open as a Definition. Its methods are safe for
// concurrent use. from is a *object.Host in a program, or the *object.State, Task or Run of the
// code that calls.
type Breaker struct {
	*object.Class[circuit]
	config Config

	enter  *object.Method[none, pass]
	report *object.Method[outcome, none]
	status *object.Method[none, Status]
	reset  *object.Method[string, none]

	busy atomic.Uint64 // calls that found too many others before them
}

// none stands for no argument or no result.
type none struct{}

// New makes a breaker. It does not fail: object.Open returns the mistakes in c.
func New(c Config) *Breaker {
	b := &Breaker{config: c.withDefaults()}
	b.Class = object.Define(c.Name, func(ctx context.Context, st *object.State) (*circuit, error) {
		return load(ctx, st, &b.config)
	}, b.config.Class)
	b.enter = object.Handle(b.Class, "enter", (*circuit).enter)
	b.report = object.Handle(b.Class, "report", (*circuit).report)
	b.status = object.Handle(b.Class, "status", (*circuit).status)
	b.reset = object.Handle(b.Class, "reset", (*circuit).reset, object.Sent(func(string) none { return none{} }))
	b.Reject(c.Validate())
	return b
}

// Do runs fn, unless the breaker of the named dependency is open: then it returns an error that
// is ErrOpen and tells until when. Otherwise it returns the error of fn, and counts
// the outcome. A panic of fn counts as a failure, and goes on to the caller.
//
// If too many calls wait for the object of the breaker, fn does not run either: Do returns an
// error that is object.ErrOverloaded, with which a run, a task or a step waits for 1 to 1.5 s at
// no attempt.
//
// While the breaker is closed, Do makes two calls to the object, which write nothing.
// An outcome that cannot be told to the object, because the host shuts down or too many calls
// wait for the object, counts for nothing. A probe without an outcome is one that hangs: OpenFor
// later the breaker opens again, because nothing tells that the dependency answers.
func (b *Breaker) Do(ctx context.Context, from object.Caller, name string, fn func(ctx context.Context) error) error {
	p, err := b.enter.Call(ctx, from, name, none{})
	if errors.Is(err, object.ErrOverloaded) {
		return &busyError{err, b.busyWait()}
	}
	if err != nil {
		return err
	}
	if p.Refused {
		return &openError{object: b.ID(name).String(), p: p}
	}
	o := outcome{Ticket: p.Ticket, Failed: true, Error: "panic"}
	defer func() {
		_, _ = b.report.Call(context.WithoutCancel(ctx), from, name, o)
	}()
	err = fn(ctx)
	o = outcome{Ticket: p.Ticket, Void: gaveUp(ctx, err)}
	if err != nil && !o.Void && b.config.Failure(err) {
		o.Failed, o.Error = true, err.Error()
	}
	return err
}

// gaveUp reports whether a call has ended because its caller gave it up, which says nothing of
// the dependency. The cause of the context counts too, because net/http returns it.
func gaveUp(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) || err != nil && errors.Is(ctx.Err(), context.Canceled) && errors.Is(err, context.Cause(ctx))
}

// Reset closes the breaker of the named dependency, whatever its state is, and forgets the
// failures so far. The event of the change has the reason. With the Outbox of a State
// as from, it happens if and only if the turn commits.
func (b *Breaker) Reset(ctx context.Context, from object.Caller, name, reason string) error {
	_, err := b.reset.Call(ctx, from, name, reason)
	return err
}

// Status returns the state of the breaker of the named dependency. One that was never used is
// closed.
func (b *Breaker) Status(ctx context.Context, from object.Caller, name string) (Status, error) {
	return b.status.Call(ctx, from, name, none{})
}

// busyError is the error of a call that could not ask the breaker.
type busyError struct {
	error
	wait time.Duration
}

func (e *busyError) Unwrap() error { return e.error }

// SnoozeDelay makes a job wait as jobs.Snooze does, because the dependency was not called.
func (e *busyError) SnoozeDelay() time.Duration { return e.wait }

// busyWait is how long a job waits that could not ask the breaker. Sixteen waits in a row
// differ, so that not all jobs ask again at one time; a task has no random source for that.
func (b *Breaker) busyWait() time.Duration {
	return time.Second + time.Duration(b.busy.Add(1)%16)*time.Second/32
}

// openError is the error of a refused call.
type openError struct {
	object string
	p      pass
}

func (e *openError) Error() string {
	text := fmt.Sprintf("breaker: %s: %v until %s", e.object, ErrOpen, e.p.Until.UTC().Format(time.RFC3339))
	if e.p.Cause != "" {
		text += ", because the last failure was: " + e.p.Cause
	}
	return text
}

func (e *openError) Unwrap() error { return ErrOpen }

// SnoozeDelay makes a job wait as jobs.Snooze does.
func (e *openError) SnoozeDelay() time.Duration { return e.p.Wait }

// Retryable makes a message wait in its queue.
func (e *openError) Retryable() bool { return true }

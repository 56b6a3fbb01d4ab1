package workflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/seam"
)

// Through has each attempt at the step go through the breaker of the named dependency (K1).
// While that is open the function of the step is not called: the run waits, without a goroutine
// and without memory if that is longer than a second, until the breaker may let it through. That
// counts as no attempt and makes no entry, so a long outage fills no history, and a repeat asks
// the breaker again. Pass the breaker to object.Open beside the workflow.
//
// A value that cannot be encoded is no failure of the dependency.
func Through(b *breaker.Breaker, name string) StepOption {
	return StepOption{through: func(ctx context.Context, s *stretch, fn attemptFunc) ([]byte, error) {
		if b == nil {
			return nil, &finalError{fmt.Errorf("%w: Through has no breaker", ErrMisuse), 0}
		}
		var value []byte
		var final *finalError
		err := b.Do(ctx, s.st, name, func(ctx context.Context) (err error) {
			value, err = fn(ctx)
			if errors.As(err, &final) { // the dependency has answered
				return nil
			}
			return err
		})
		if err == nil && final != nil {
			err = final
		}
		return value, err
	}}
}

// attemptFunc makes one attempt at a step.
type attemptFunc = func(ctx context.Context) ([]byte, error)

// snoozed returns the wait that an attempt has asked for with its error, as jobs.Snooze and an
// open breaker do. One that panicked, or used up its time, has failed all the same.
func (s *stretch) snoozed(name string, err error) (w Wait, ok bool) {
	var p *seam.PanicError
	var final *finalError
	if errors.As(err, &p) || errors.As(err, &final) || errors.Is(err, ErrTimeout) {
		return w, false
	}
	d, ok := engine.SnoozeDelay(err)
	if !ok {
		return w, false
	}
	w = Wait{Kind: waitRetry, Name: name, Until: storable(s.now().Add(max(d, time.Millisecond)))}
	if errors.Is(err, breaker.ErrOpen) {
		w.Kind = waitBreaker
	}
	return w, true
}

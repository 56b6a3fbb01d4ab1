package seam

import (
	"context"
	"errors"
)

// Cause tells why ctx has ended: an error that reads as context.Cause(ctx) and
// matches both that and ctx.Err(), so that a caller may look for
// context.DeadlineExceeded whether or not its context has a cause. It is nil while
// ctx lives.
func Cause(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	switch {
	case cause == nil:
		return err
	case errors.Is(cause, err):
		return cause
	}
	return &endedError{cause, err}
}

// endedError is the end of a context with a cause of its own.
type endedError struct{ cause, err error }

func (e *endedError) Error() string   { return e.cause.Error() }
func (e *endedError) Unwrap() []error { return []error{e.cause, e.err} }

package object

import (
	"errors"
	"time"
)

// Permanent makes an error final: an alarm whose handler returns it becomes a dead
// letter without further attempts, and a job's run is given up. It returns nil for
// nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether err is, or wraps, an error that Permanent made.
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// RetryAfter makes the next attempt of a failed alarm, or of a job's failed run,
// happen after d instead of at the time of its retry policy; the attempt counts all
// the same. A negative d means at once. It returns nil for a nil error.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{max(d, 0), err}
}

// RetryDelay returns the time that RetryAfter gave to err, or to an error that err
// wraps; ok is false if there is none.
func RetryDelay(err error) (d time.Duration, ok bool) {
	var after *retryAfterError
	if !errors.As(err, &after) {
		return 0, false
	}
	return after.after, true
}

type retryAfterError struct {
	after time.Duration
	err   error
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

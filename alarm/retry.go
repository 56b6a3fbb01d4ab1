package alarm

import (
	"cmp"
	"fmt"
	"time"
)

// Retry says how often failed work is tried again, and when (A6, J9): an alarm of an
// object, a run of a job, a task. The zero Retry is the default of the place that it is
// given to; each says which.
type Retry struct {
	// MaxAttempts is how many attempts may fail in all before the work is given up.
	// Crashes and shutdowns do not count. 1 means that nothing is tried again. Zero
	// means the default: 1 for runs and flushes, 3 for tasks, 7 for alarms.
	MaxAttempts int
	// Backoff is the wait after a failure, counted from the failure. The zero Backoff
	// is Exponential(time.Second, time.Minute), and for alarms Exponential from 2 s to
	// 64 s with a jitter of a quarter.
	Backoff Backoff
	// MaxElapsed ends the retries when the next attempt would begin later than this
	// after the first one began. For an alarm it counts from the time that was set.
	// Zero means no limit.
	MaxElapsed time.Duration
	// RetryIf reports whether an error is worth another attempt. It is called in a
	// turn, so it must be quick. It is not asked about executions that were lost, nor
	// about errors that are Permanent. Nil means that each error is. Alarms refuse it,
	// because a handler that returns Permanent(err) says the same.
	RetryIf func(error) bool
}

// Validate reports the first mistake in r.
func (r Retry) Validate() error {
	return cmp.Or(
		notNegative("MaxAttempts", r.MaxAttempts), notNegative("MaxElapsed", r.MaxElapsed), r.Backoff.Validate(),
	)
}

// notNegative is an error that names a field of a Retry which is less than zero.
func notNegative[T int | time.Duration](name string, v T) error {
	if v < 0 {
		return fmt.Errorf("%s must not be negative: %v", "Retry."+name, v)
	}
	return nil
}

package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// Retry says how often a failing run is tried again, and when (J9). The zero
// Retry tries once.
type Retry struct {
	// MaxAttempts is how many failed executions a run may have in all before it
	// is given up. Crashes and shutdowns do not count. Zero means 1.
	MaxAttempts int
	// Backoff is the wait after a failure, counted from the failure. The zero
	// Backoff is Exponential(time.Second, time.Minute).
	Backoff Backoff
	// MaxElapsed ends the retries of a run when the next one would begin later
	// than this after its first execution began. Zero means no limit.
	MaxElapsed time.Duration
	// RetryIf reports whether an error is worth another try. It is not asked
	// about executions that were lost, nor about errors that are Permanent. Nil
	// means each error is.
	RetryIf func(error) bool
}

// Validate reports the first mistake in r, as an ErrInvalid.
func (r Retry) Validate() error {
	return cmp.Or(
		notNegative("Retry.MaxAttempts", r.MaxAttempts), notNegative("Retry.MaxElapsed", r.MaxElapsed), r.Backoff.Validate(),
	)
}

// Reason says why a run was given up.
type Reason string

const (
	NotGivenUp         Reason = ""
	ReasonAttempts     Reason = "attempts"      // Retry.MaxAttempts
	ReasonDuration     Reason = "duration"      // Retry.MaxElapsed
	ReasonNotRetryable Reason = "not retryable" // Retry.RetryIf
	ReasonPermanent    Reason = "permanent"     // the error is Permanent
	ReasonRecoveries   Reason = "recoveries"    // Options.MaxRecoveries
)

// next returns when a run that has just failed is tried again, or why it is not.
// Of run, Failures counts this failure already.
func (r Retry) next(run Run, now time.Time, err error, src rand.Source) (time.Time, Reason) {
	if object.IsPermanent(err) {
		return time.Time{}, ReasonPermanent
	}
	if r.RetryIf != nil && !errors.Is(err, ErrLost) && !r.RetryIf(err) {
		return time.Time{}, ReasonNotRetryable
	}
	if run.Failures >= max(r.MaxAttempts, 1) {
		return time.Time{}, ReasonAttempts
	}
	wait, wished := object.RetryDelay(err)
	if !wished {
		wait = r.Backoff.Delay(run.Failures, src)
	}
	at := now.Add(wait)
	if r.MaxElapsed > 0 && at.Sub(run.FirstAt) > r.MaxElapsed {
		return time.Time{}, ReasonDuration
	}
	return at, NotGivenUp
}

// Backoff is the wait between a failure and the next try. Make one with
// Constant, Linear or Exponential.
type Backoff struct {
	kind   backoffKind
	base   time.Duration
	limit  time.Duration
	jitter float64
}

type backoffKind uint8

const (
	backoffDefault backoffKind = iota
	backoffConstant
	backoffLinear
	backoffExponential
)

// Constant waits d after each failure.
func Constant(d time.Duration) Backoff {
	return Backoff{kind: backoffConstant, base: d, limit: d}
}

// Linear waits step after the first failure, twice that after the second, and
// so on, at most limit.
func Linear(step, limit time.Duration) Backoff {
	return Backoff{kind: backoffLinear, base: step, limit: limit}
}

// Exponential waits base after the first failure and doubles the wait with each
// further one, up to limit.
func Exponential(base, limit time.Duration) Backoff {
	return Backoff{kind: backoffExponential, base: base, limit: limit}
}

// WithJitter returns b with up to share (0 to 1) of each wait added to it at
// random, beyond the limit too. Jitter only adds.
func (b Backoff) WithJitter(share float64) Backoff {
	b.jitter = share
	return b
}

// Validate reports the first mistake in b, as an ErrInvalid.
func (b Backoff) Validate() error {
	switch {
	case b.base < 0:
		return fmt.Errorf("%w: backoff: the first wait must not be negative: %s", ErrInvalid, b.base)
	case b.limit < b.base:
		return fmt.Errorf("%w: backoff: limit %s is below the first wait %s", ErrInvalid, b.limit, b.base)
	case !(b.jitter >= 0 && b.jitter <= 1):
		return fmt.Errorf("%w: backoff: jitter must be from 0 to 1: %v", ErrInvalid, b.jitter)
	}
	return nil
}

// Delay returns the wait after the n-th failure of a run, n from 1. Without jitter
// it is exact to the nanosecond; jitter is at most its share, rounded down. A wait
// that no Duration can hold is the longest Duration.
func (b Backoff) Delay(n int, src rand.Source) time.Duration {
	d := b.plain(max(n, 1))
	if b.jitter > 0 && d > 0 {
		more := min(seam.Share(d, b.jitter), math.MaxInt64-d)
		d += time.Duration(seam.Uint64n(src, uint64(more)+1))
	}
	return max(d, 0)
}

// plain is the wait without jitter; it never overflows.
func (b Backoff) plain(n int) time.Duration {
	switch b.kind {
	case backoffConstant:
		return b.base
	case backoffLinear:
		if b.base > 0 && int64(n) > int64(b.limit/b.base) {
			return b.limit
		}
		return time.Duration(n) * b.base
	case backoffExponential:
		return doubled(b.base, b.limit, n-1)
	default:
		return doubled(time.Second, time.Minute, n-1)
	}
}

// doubled returns base · 2^times, at most limit.
func doubled(base, limit time.Duration, times int) time.Duration {
	const widest = 62 // bits of the longest Duration
	if base == 0 {
		return 0
	}
	if times > widest || base > limit>>times {
		return limit
	}
	return base << times
}

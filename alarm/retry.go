package alarm

import (
	"fmt"
	"math"
	"time"
)

// Retry says how long a failed alarm waits before its next attempt. The zero
// Retry waits 2, 4, 8, 16, 32 and 64 seconds, each plus 0 to 25 %, and then
// gives up.
type Retry struct {
	// Base is the wait after the first failure. Zero means 2 s.
	Base time.Duration
	// Factor multiplies each wait to give the next. Zero means 2; 1 keeps the
	// wait constant.
	Factor float64
	// Cap is the longest wait before jitter. Zero means 64 s, or Base if that
	// is longer.
	Cap time.Duration
	// MaxRetries is how many failures are followed by another attempt. Zero
	// means 6; negative means none.
	MaxRetries int
	// Jitter is the greatest part of a wait that is added to it at random, from
	// 0 to 1. Zero means 0.25; negative means none.
	Jitter float64
}

// maxWait keeps the longest wait, jitter included, well inside a Duration.
const maxWait = time.Duration(math.MaxInt64 / 4)

// Validate reports what makes r unfit for use.
func (r Retry) Validate() error {
	switch {
	case r.Base < 0 || r.Base > maxWait:
		return fmt.Errorf("alarm: retry: Base must be from 0 to %v: %v", maxWait, r.Base)
	case r.Factor != 0 && !(r.Factor >= 1):
		return fmt.Errorf("alarm: retry: Factor must be at least 1: %v", r.Factor)
	case r.Cap < 0 || r.Cap > maxWait:
		return fmt.Errorf("alarm: retry: Cap must be from 0 to %v: %v", maxWait, r.Cap)
	case r.Cap != 0 && r.Cap < r.withDefaults().Base:
		return fmt.Errorf("alarm: retry: Cap %v is less than Base %v", r.Cap, r.withDefaults().Base)
	case math.IsNaN(r.Jitter) || r.Jitter > 1:
		return fmt.Errorf("alarm: retry: Jitter must not be more than 1: %v", r.Jitter)
	}
	return nil
}

// Next returns the wait that follows the attempt-th failure, counted from 1, and
// whether there is another attempt at all. rnd is a random number; it decides
// the jitter, which only adds. r must be valid.
func (r Retry) Next(attempt int, rnd uint64) (delay time.Duration, ok bool) {
	r = r.withDefaults()
	if attempt > r.MaxRetries {
		return 0, false
	}
	wait := r.wait(max(attempt, 1))
	part := float64(rnd>>11) / (1 << 53) // in [0, 1)
	return wait + time.Duration(float64(wait)*r.Jitter*part), true
}

// wait is the wait after the attempt-th failure without jitter.
func (r Retry) wait(attempt int) time.Duration {
	grown := float64(r.Base) * math.Pow(r.Factor, float64(attempt-1))
	if grown >= float64(r.Cap) {
		return r.Cap
	}
	return max(time.Duration(grown), r.Base)
}

func (r Retry) withDefaults() Retry {
	if r.Base == 0 {
		r.Base = 2 * time.Second
	}
	if r.Factor == 0 {
		r.Factor = 2
	}
	if r.Cap == 0 {
		r.Cap = max(64*time.Second, r.Base)
	}
	if r.MaxRetries == 0 {
		r.MaxRetries = 6
	}
	if r.Jitter == 0 {
		r.Jitter = 0.25
	}
	r.MaxRetries, r.Jitter = max(r.MaxRetries, 0), max(r.Jitter, 0)
	return r
}

package alarm

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// Retry says how long a failed alarm waits before its next attempt. The zero
// Retry waits 2, 4, 8, 16, 32 and 64 seconds, each plus 0 to 25 %, and then
// gives up.
type Retry struct {
	// Base is the wait after the first failure. Zero means 2 s.
	Base time.Duration
	// Factor multiplies each wait to give the next: the n-th wait is Base times
	// Factor^(n-1), rounded down to a nanosecond. A whole factor gives exact
	// waits. Zero means 2; 1 keeps the wait constant.
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
	jitter, _ := bits.Mul64(rnd, uint64(seam.Share(wait, r.Jitter))+1) // from 0 to the share
	return wait + time.Duration(jitter), true
}

// precision is how many bits of a wait are counted with before it is rounded: more
// than a Duration times a float64 has.
const precision = 128

// wait is the wait after the attempt-th failure without jitter.
func (r Retry) wait(attempt int) time.Duration {
	grown := power(r.Factor, attempt-1)
	grown.Mul(grown, number().SetInt64(int64(r.Base)))
	if grown.Cmp(number().SetInt64(int64(r.Cap))) >= 0 {
		return r.Cap
	}
	ns, _ := grown.Int64()
	return time.Duration(ns)
}

// power returns factor^n, rounded down to precision bits. It takes as many steps as
// n has bits.
func power(factor float64, n int) *big.Float {
	grown, square := number().SetInt64(1), number().SetFloat64(factor)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			grown.Mul(grown, square)
		}
		square.Mul(square, square)
	}
	return grown
}

func number() *big.Float { return new(big.Float).SetPrec(precision).SetMode(big.ToZero) }

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

package alarm

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// Backoff is the wait between a failure and the next try. Make one with
// Constant, Linear or Exponential.
type Backoff struct {
	kind   backoffKind
	base   time.Duration
	limit  time.Duration
	factor float64 // of an exponential one; 0 means 2
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

// WithFactor returns b, which is Exponential, with waits that grow by factor instead of
// 2: the n-th wait is base times factor^(n-1), rounded down to a nanosecond. Whole factors
// give exact waits. factor is at least 1.
func (b Backoff) WithFactor(factor float64) Backoff {
	if b.kind == backoffDefault {
		jitter := b.jitter
		b = Exponential(time.Second, time.Minute)
		b.jitter = jitter
	}
	b.factor = factor
	return b
}

// Validate reports the first mistake in b.
func (b Backoff) Validate() error {
	switch {
	case b.factor != 0 && b.kind != backoffExponential:
		return fmt.Errorf("backoff: a factor is for Exponential")
	case b.factor != 0 && !(b.factor >= 1):
		return fmt.Errorf("backoff: factor must be at least 1: %v", b.factor)
	case b.base < 0:
		return fmt.Errorf("backoff: the first wait must not be negative: %s", b.base)
	case b.limit < b.base:
		return fmt.Errorf("backoff: limit %s is below the first wait %s", b.limit, b.base)
	case !(b.jitter >= 0 && b.jitter <= 1):
		return fmt.Errorf("backoff: jitter must be from 0 to 1: %v", b.jitter)
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
		if b.factor != 0 && b.factor != 2 {
			return grown(b.base, b.limit, b.factor, n-1)
		}
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

// precision is how many bits of a wait are counted with before it is rounded: more
// than a Duration times a float64 has.
const precision = 128

// grown returns base · factor^times, rounded down, at most limit.
func grown(base, limit time.Duration, factor float64, times int) time.Duration {
	if base == 0 {
		return 0
	}
	wait := power(factor, times)
	wait.Mul(wait, number().SetInt64(int64(base)))
	if wait.Cmp(number().SetInt64(int64(limit))) >= 0 {
		return limit
	}
	ns, _ := wait.Int64()
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

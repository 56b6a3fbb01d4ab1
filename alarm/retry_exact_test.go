package alarm

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Proves A6, Case SC1: waits are exact to the nanosecond for whole factors, rounded down
// for others, and the greatest jitter is the whole share.
func TestRetryIsExact(t *testing.T) {
	const odd = 1<<53 + 1 // the least whole number that a float64 rounds
	for _, c := range []struct {
		name     string
		r        Retry
		attempt  int
		want     time.Duration
		jittered time.Duration
	}{
		{"first", Retry{Base: odd, Cap: maxWait}, 1, odd, odd + odd/4},
		{"doubled", Retry{Base: odd, Cap: maxWait}, 3, 4 * odd, 5 * odd},
		{"tripled", Retry{Base: odd, Factor: 3, Cap: maxWait, Jitter: 1}, 4, 27 * odd, 54 * odd},
		{"just below the cap", Retry{Base: odd, Cap: 2*odd + 1, Jitter: -1}, 2, 2 * odd, 2 * odd},
		{"just above the cap", Retry{Base: odd, Cap: 2*odd - 1, Jitter: -1}, 2, 2*odd - 1, 2*odd - 1},
		{"half again, rounded down", Retry{Base: odd, Factor: 1.5, Cap: maxWait, Jitter: -1}, 2, odd + odd/2, odd + odd/2},
		{"half again of one", Retry{Base: 1, Factor: 1.5, Jitter: -1}, 3, 2, 2},
		{"no factor that a float holds", Retry{Factor: math.Inf(1), Jitter: -1}, 2, 64 * time.Second, 64 * time.Second},
	} {
		if err := c.r.Validate(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		c.r.MaxRetries = 10
		least, _ := c.r.Next(c.attempt, 0)
		most, _ := c.r.Next(c.attempt, math.MaxUint64)
		if least != c.want || most != c.jittered {
			t.Errorf("%s: %d to %d ns, want %d to %d", c.name, least, most, c.want, c.jittered)
		}
	}
}

// Proves A6, Case SC1: for each base and each whole factor the wait is the product.
func TestRetryAgreesWithBigNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Retry{
			Base: time.Duration(rapid.Int64Range(1, int64(maxWait)).Draw(t, "base")), Factor: float64(rapid.Int64Range(1, 1<<53).Draw(t, "factor")),
			Cap: maxWait, MaxRetries: 100, Jitter: -1,
		}
		attempt := rapid.IntRange(1, 100).Draw(t, "attempt")
		want := new(big.Int).Exp(big.NewInt(int64(r.Factor)), big.NewInt(int64(attempt-1)), nil)
		want.Mul(want, big.NewInt(int64(r.Base)))
		if want.Cmp(big.NewInt(int64(maxWait))) > 0 {
			want.SetInt64(int64(maxWait))
		}
		if got, _ := r.Next(attempt, 0); int64(got) != want.Int64() {
			t.Fatalf("wait %d, want %d", got, want)
		}
	})
}

package alarm

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Proves A6, J9, Case SC1: a wait is exact to the nanosecond, also for a base that no
// float64 holds. A wait that would be longer than the limit is the limit.
func TestBackoffIsExact(t *testing.T) {
	const odd = 1<<53 + 1 // the least whole number that a float64 rounds
	longest := time.Duration(math.MaxInt64)
	for _, tt := range []struct {
		name string
		b    Backoff
		n    int
		want time.Duration
	}{
		{"first", Exponential(odd, longest), 1, odd},
		{"doubled", Exponential(odd, longest), 2, 2 * odd},
		{"just below the limit", Exponential(odd, 4*odd+1), 3, 4 * odd},
		{"at the limit", Exponential(odd, 4*odd), 3, 4 * odd},
		{"just above the limit", Exponential(odd, 4*odd-1), 3, 4*odd - 1},
		{"longest", Exponential(1, longest), 63, 1 << 62},
		{"beyond the longest", Exponential(1, longest), 64, longest},
		{"beyond all bits", Exponential(1, longest), math.MaxInt, longest},
		{"nothing doubled", Exponential(0, longest), 100, 0},
		{"tripled", Exponential(odd, longest).WithFactor(3), 4, 27 * odd},
		{"half again, rounded down", Exponential(odd, longest).WithFactor(1.5), 2, odd + odd/2},
		{"half again of one", Exponential(1, longest).WithFactor(1.5), 3, 2},
		{"just below the limit of a factor", Exponential(odd, 3*odd+1).WithFactor(3), 2, 3 * odd},
		{"just above the limit of a factor", Exponential(odd, 3*odd-1).WithFactor(3), 2, 3*odd - 1},
		{"no factor that a float holds", Exponential(odd, longest).WithFactor(math.Inf(1)), 2, longest},
		{"nothing grown", Exponential(0, longest).WithFactor(math.Inf(1)), 9, 0},
		{"far beyond", Exponential(odd, longest).WithFactor(1e300), math.MaxInt, longest},
		{"linear", Linear(odd, longest), 3, 3 * odd},
		{"linear beyond the longest", Linear(odd, longest), 2000, longest},
	} {
		if got := tt.b.Delay(tt.n, nil); got != tt.want {
			t.Errorf("%s: %d ns, want %d", tt.name, got, tt.want)
		}
	}
}

// greatest draws the greatest random number each time.
type greatest struct{}

func (greatest) Uint64() uint64 { return math.MaxUint64 }

// Proves A6, J9, Case SC1: waits and the bound of their jitter are those of whole numbers of
// any size.
func TestBackoffAgreesWithBigNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(0, math.MaxInt64).Draw(t, "base")
		limit := rapid.Int64Range(base, math.MaxInt64).Draw(t, "limit")
		n := rapid.IntRange(1, 70).Draw(t, "failures")
		share := rapid.Float64Range(0, 1).Draw(t, "share")

		want := new(big.Int).Lsh(big.NewInt(base), uint(n-1))
		if want.Cmp(big.NewInt(limit)) > 0 {
			want.SetInt64(limit)
		}
		b := Exponential(time.Duration(base), time.Duration(limit))
		if got := b.Delay(n, nil); int64(got) != want.Int64() {
			t.Fatalf("wait %d, want %d", got, want)
		}
		product := new(big.Rat).Mul(new(big.Rat).SetInt(want), new(big.Rat).SetFloat64(share))
		most := new(big.Int).Quo(product.Num(), product.Denom())
		if most.Add(most, want); !most.IsInt64() {
			most.SetInt64(math.MaxInt64)
		}
		if got := b.WithJitter(share).Delay(n, greatest{}); int64(got) < want.Int64() || int64(got) > most.Int64() {
			t.Fatalf("wait %d with jitter, want %d to %d", got, want, most)
		}
	})
}

// Proves A6, Case SC1: for each base and each whole factor the wait is the product.
func TestFactorAgreesWithBigNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, factor := rapid.Int64Range(1, math.MaxInt64).Draw(t, "base"), rapid.Int64Range(1, 1<<53).Draw(t, "factor")
		b := Exponential(time.Duration(base), math.MaxInt64).WithFactor(float64(factor))
		attempt := rapid.IntRange(1, 100).Draw(t, "attempt")
		want := new(big.Int).Exp(big.NewInt(factor), big.NewInt(int64(attempt-1)), nil)
		want.Mul(want, big.NewInt(base))
		if want.Cmp(big.NewInt(math.MaxInt64)) > 0 {
			want.SetInt64(math.MaxInt64)
		}
		if got := b.Delay(attempt, nil); int64(got) != want.Int64() {
			t.Fatalf("wait %d, want %d", got, want)
		}
	})
}

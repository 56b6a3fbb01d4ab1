package jobs

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Proves J9, Case SC1: a wait is exact to the nanosecond, for bases that no float holds
// too, and a wait at its limit is the limit on both sides of it.
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

// Proves J9, Case SC1: waits and the bound of their jitter are those of whole numbers of
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

package seam_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/seam"
)

func TestShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Int64Range(0, math.MaxInt64).Draw(t, "duration")
		share := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1, 0.5, math.SmallestNonzeroFloat64})).Draw(t, "share")
		exact := new(big.Rat).Mul(new(big.Rat).SetInt64(d), new(big.Rat).SetFloat64(share))
		want := new(big.Int).Quo(exact.Num(), exact.Denom()).Int64()
		if got := seam.Share(time.Duration(d), share); int64(got) != want {
			t.Fatalf("%v of %d is %d, want %d", share, d, got, want)
		}
	})
}

package alarm

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// A wait is never negative, not less than without jitter, and within its bounds.
func FuzzBackoff(f *testing.F) {
	f.Add(uint8(2), int64(time.Second), int64(time.Minute), 0.5, 3)
	f.Add(uint8(0), int64(math.MaxInt64), int64(math.MaxInt64), 1.0, 1)
	f.Add(uint8(1), int64(1), int64(math.MaxInt64), 0.0, math.MaxInt)
	f.Add(uint8(2), int64(0), int64(0), 1.0, 5000)
	f.Fuzz(func(t *testing.T, kind uint8, base, limit int64, jitter float64, n int) {
		b := []Backoff{Constant(time.Duration(base)), Linear(time.Duration(base), time.Duration(limit)), Exponential(time.Duration(base), time.Duration(limit))}[kind%3]
		b = b.WithJitter(jitter)
		if b.Validate() != nil {
			return
		}
		plain, d := b.WithJitter(0).Delay(n, nil), b.Delay(n, rand.NewPCG(uint64(n), 0))
		longest := math.Nextafter(float64(b.limit)*(1+jitter)+1, math.Inf(1))
		if plain < 0 || plain > b.limit || d < plain || float64(d) > longest {
			t.Fatalf("%+v: %v, with jitter %v", b, plain, d)
		}
		if next := b.WithJitter(0).Delay(n+1, nil); n < math.MaxInt && next < plain {
			t.Fatalf("%+v: %v after %d, then %v", b, plain, n, next)
		}
	})
}

package alarm

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Proves J9, A6: the waits of each backoff, capped.
func TestBackoff(t *testing.T) {
	s := time.Second
	tests := []struct {
		name string
		b    Backoff
		want []time.Duration
	}{
		{"constant", Constant(3 * s), []time.Duration{3 * s, 3 * s, 3 * s}},
		{"linear", Linear(2*s, 5*s), []time.Duration{2 * s, 4 * s, 5 * s, 5 * s}},
		{"exponential", Exponential(s, 6*s), []time.Duration{s, 2 * s, 4 * s, 6 * s}},
		{"zero value", Backoff{}, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s}},
		{"half again", Exponential(s, 3*s).WithFactor(1.5), []time.Duration{s, 1500 * time.Millisecond, 2250 * time.Millisecond, 3 * s}},
		{"a factor of one", Exponential(s, 3*s).WithFactor(1), []time.Duration{s, s, s}},
		{"a factor of the zero value", Backoff{}.WithFactor(10), []time.Duration{s, 10 * s, 60 * s}},
		{"at once", Constant(0), []time.Duration{0, 0}},
	}
	for _, tt := range tests {
		for i, want := range tt.want {
			if got := tt.b.Delay(i+1, nil); got != want {
				t.Errorf("%s: after failure %d wait %s, want %s", tt.name, i+1, got, want)
			}
		}
	}
}

// Proves J9, A6: no wait is negative, shrinks as failures grow, or passes its cap
// and jitter, for any number of failures.
func TestBackoffProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.Int64Range(0, math.MaxInt64/4).Draw(t, "base"))
		limit := base + time.Duration(rapid.Int64Range(0, math.MaxInt64/4).Draw(t, "room"))
		b := rapid.SampledFrom([]Backoff{Constant(base), Linear(base, limit), Exponential(base, limit),
			Exponential(base, limit).WithFactor(rapid.Float64Range(1, 1e9).Draw(t, "factor"))}).Draw(t, "backoff")
		if err := b.Validate(); err != nil {
			t.Fatal(err)
		}
		src := rand.NewPCG(1, 2)
		n := rapid.IntRange(1, 10_000).Draw(t, "failures")
		plain, next := b.Delay(n, src), b.Delay(n+1, src)
		if plain < base || next < plain || next > limit {
			t.Fatalf("waits %s then %s from %s to %s", plain, next, base, limit)
		}
		if got := b.WithJitter(0.5).Delay(n, src); got < plain || float64(got) > float64(plain)*1.5+1 {
			t.Fatalf("with jitter %s, without %s", got, plain)
		}
	})
}

func TestRetryMistakes(t *testing.T) {
	for _, r := range []Retry{
		{MaxAttempts: -1}, {MaxElapsed: -1}, {Backoff: Constant(-1)}, {Backoff: Linear(2, 1)},
		{Backoff: Constant(1).WithFactor(2)},
		{Backoff: Backoff{}.WithFactor(0.5)}, {Backoff: Backoff{}.WithFactor(-1)}, {Backoff: Backoff{}.WithFactor(math.NaN())},
		{Backoff: Constant(1).WithJitter(-0.1)}, {Backoff: Constant(1).WithJitter(math.NaN())},
	} {
		if err := r.Validate(); err == nil {
			t.Errorf("%+v is valid", r)
		}
	}
	if err := (Retry{}).Validate(); err != nil {
		t.Errorf("the zero Retry: %v", err)
	}
}

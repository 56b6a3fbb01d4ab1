package jobs

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Proves J9: the waits of each backoff, capped.
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

// Proves J9: no wait is negative, shrinks as failures grow, or passes its cap
// and jitter, for any number of failures.
func TestBackoffProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.Int64Range(0, math.MaxInt64/4).Draw(t, "base"))
		limit := base + time.Duration(rapid.Int64Range(0, math.MaxInt64/4).Draw(t, "room"))
		b := rapid.SampledFrom([]Backoff{Constant(base), Linear(base, limit), Exponential(base, limit)}).Draw(t, "backoff")
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

// Proves J9: attempts counts executions in all, the wait counts from the
// failure, and the reason of the end is carried.
func TestRetryNext(t *testing.T) {
	boom, fatal := errors.New("boom"), errors.New("fatal")
	r := Retry{
		MaxAttempts: 3, Backoff: Constant(10 * time.Second), MaxElapsed: time.Minute,
		RetryIf: func(err error) bool { return err != fatal },
	}
	tests := []struct {
		name   string
		r      Retry
		run    Run
		now    time.Time
		err    error
		at     time.Time
		reason Reason
	}{
		{"first failure", r, Run{Failures: 1, FirstAt: noon}, noon.Add(5 * time.Second), boom, noon.Add(15 * time.Second), NotGivenUp},
		{"last failure", r, Run{Failures: 3, FirstAt: noon}, noon, boom, time.Time{}, ReasonAttempts},
		{"too late", r, Run{Failures: 2, FirstAt: noon}, noon.Add(51 * time.Second), boom, time.Time{}, ReasonDuration},
		{"just in time", r, Run{Failures: 2, FirstAt: noon}, noon.Add(50 * time.Second), boom, noon.Add(time.Minute), NotGivenUp},
		{"hopeless", r, Run{Failures: 1, FirstAt: noon}, noon, fatal, time.Time{}, ReasonNotRetryable},
		{"crashes cost no attempt", r, Run{Attempt: 9, Recoveries: 8, Failures: 1, FirstAt: noon}, noon, boom, noon.Add(10 * time.Second), NotGivenUp},
		{"zero value", Retry{}, Run{Failures: 1, FirstAt: noon}, noon, boom, time.Time{}, ReasonAttempts},
	}
	for _, tt := range tests {
		at, reason := tt.r.next(tt.run, tt.now, tt.err, nil)
		if !at.Equal(tt.at) || reason != tt.reason {
			t.Errorf("%s: at %s for %q, want %s for %q", tt.name, at, reason, tt.at, tt.reason)
		}
	}
}

func TestRetryMistakes(t *testing.T) {
	for _, r := range []Retry{
		{MaxAttempts: -1}, {MaxElapsed: -1}, {Backoff: Constant(-1)}, {Backoff: Linear(2, 1)},
		{Backoff: Constant(1).WithJitter(-0.1)}, {Backoff: Constant(1).WithJitter(math.NaN())},
	} {
		if err := r.Validate(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: got %v, want ErrInvalid", r, err)
		}
	}
	if err := (Retry{}).Validate(); err != nil {
		t.Errorf("the zero Retry: %v", err)
	}
}

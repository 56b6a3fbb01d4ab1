package alarm

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRetryDefaultsA6(t *testing.T) {
	var r Retry
	for i, s := range []time.Duration{2, 4, 8, 16, 32, 64} {
		least, ok := r.Next(i+1, 0)
		most, _ := r.Next(i+1, math.MaxUint64)
		wait := s * time.Second
		if !ok || least != wait || most <= wait || most > wait*5/4 {
			t.Errorf("after failure %d: %v to %v, %v; want %v to a quarter more", i+1, least, most, ok, wait)
		}
	}
	if d, ok := r.Next(7, 0); ok || d != 0 {
		t.Errorf("after the last: %v, %v", d, ok)
	}
}

func TestRetrySettings(t *testing.T) {
	for _, c := range []struct {
		name    string
		r       Retry
		attempt int
		want    time.Duration
		ok      bool
	}{
		{"none", Retry{MaxRetries: -1}, 1, 0, false},
		{"constant", Retry{Base: time.Second, Factor: 1, Jitter: -1}, 5, time.Second, true},
		{"half again", Retry{Base: time.Second, Factor: 1.5, Jitter: -1}, 3, 2250 * time.Millisecond, true},
		{"cap", Retry{Cap: 5 * time.Second, Jitter: -1}, 3, 5 * time.Second, true},
		{"long base is its own cap", Retry{Base: time.Hour, Jitter: -1}, 3, time.Hour, true},
		{"far beyond", Retry{Factor: 1e300, MaxRetries: 1 << 40, Jitter: -1}, 1 << 40, 64 * time.Second, true},
		{"attempt 0 is the first", Retry{Jitter: -1}, 0, 2 * time.Second, true},
	} {
		if err := c.r.Validate(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if d, ok := c.r.Next(c.attempt, math.MaxUint64); d != c.want || ok != c.ok {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, d, ok, c.want, c.ok)
		}
	}
}

func TestRetryValidate(t *testing.T) {
	for _, r := range []Retry{
		{Base: -1}, {Base: math.MaxInt64}, {Factor: 0.5}, {Factor: -1}, {Factor: math.NaN()},
		{Cap: -1}, {Cap: math.MaxInt64}, {Cap: time.Second}, {Jitter: 1.5}, {Jitter: math.NaN()},
	} {
		if r.Validate() == nil {
			t.Errorf("%+v is valid", r)
		}
	}
}

// Jitter only adds, the cap holds before it, and waits never get shorter.
func TestRetryBoundsA6(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Retry{
			Base:       time.Duration(rapid.Int64Range(0, int64(maxWait)).Draw(t, "base")),
			Factor:     rapid.Float64Range(1, 1e9).Draw(t, "factor"),
			Cap:        time.Duration(rapid.Int64Range(0, int64(maxWait)).Draw(t, "cap")),
			MaxRetries: rapid.IntRange(-1, 100).Draw(t, "max"),
			Jitter:     rapid.Float64Range(-1, 1).Draw(t, "jitter"),
		}
		if r.Validate() != nil {
			return
		}
		attempt := rapid.IntRange(1, 100).Draw(t, "attempt")
		least, ok := r.Next(attempt, 0)
		some, _ := r.Next(attempt, rapid.Uint64().Draw(t, "rnd"))
		later, _ := r.Next(attempt+1, 0)
		d := r.withDefaults()
		if ok != (attempt <= d.MaxRetries) {
			t.Fatalf("attempt %d: %v", attempt, ok)
		}
		if !ok {
			return
		}
		most := least + time.Duration(float64(least)*d.Jitter) + 1
		if least < d.Base || least > d.Cap || some < least || some > most || later != 0 && later < least {
			t.Fatalf("%v, %v, then %v", least, some, later)
		}
	})
}

package object

import (
	"math"
	"testing"
	"time"
)

// Proves J17: the time between two starts is rounded up, also of the longest period.
func TestIntervalOfAStartRate(t *testing.T) {
	for _, c := range []struct {
		rate StartRate
		want time.Duration
	}{
		{StartRate{}, 0},
		{StartRate{Starts: 3, Per: 9}, 3},
		{StartRate{Starts: 3, Per: 10}, 4},
		{StartRate{Starts: 10, Per: 3}, 1},
		{StartRate{Starts: 2, Per: math.MaxInt64}, 1 << 62},
	} {
		if got := c.rate.interval(); got != c.want {
			t.Errorf("%+v: %d, want %d", c.rate, got, c.want)
		}
	}
}

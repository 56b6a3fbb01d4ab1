package object

import (
	"errors"
	"math"
	"testing"
	"time"
)

// Proves M4: the times of delayed messages, on both sides of each bound.
func TestTimesOfDelayedMessages(t *testing.T) {
	begin, end := time.Unix(0, 0), time.Unix(0, math.MaxInt64)
	for name, c := range map[string]struct {
		now   time.Time
		delay time.Duration
		due   int64 // 0: refused
	}{
		"a nanosecond":             {begin.Add(5), 1, 6},
		"a hundred years":          {begin, maxDelay, int64(maxDelay)},
		"longer":                   {begin, maxDelay + 1, 0},
		"the longest":              {begin, math.MaxInt64, 0},
		"the last time":            {end.Add(-time.Hour), time.Hour, math.MaxInt64},
		"after the last time":      {end.Add(-time.Hour), time.Hour + 1, 0},
		"a clock after that":       {end.Add(time.Hour), 1, 0},
		"the first time":           {begin.Add(-time.Hour), time.Hour, 1},
		"before the first time":    {begin.Add(-time.Hour), time.Hour - 1, 0},
		"a clock before all times": {time.Time{}, time.Hour, 0},
	} {
		due, err := dueAfter(c.now, c.delay)
		if due != c.due || (c.due == 0) != errors.Is(err, ErrBadDelay) || c.due != 0 && err != nil {
			t.Errorf("%s: %d, %v, want %d", name, due, err, c.due)
		}
	}
}

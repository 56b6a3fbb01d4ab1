package debounce

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// collected is a generation with events at the given seconds.
func collected(l limits, seconds ...int) generation {
	g := generation{number: 1}
	for _, s := range seconds {
		g = l.with(g, at(s))
	}
	return g
}

// Proves D1 and D4: when a generation is due, and the cause that came first.
func TestDue(t *testing.T) {
	trailing := limits{quiet: 5 * time.Second, maxWait: 20 * time.Second, maxEvents: 4}
	window := limits{maxWait: 10 * time.Second}
	for _, c := range []struct {
		name   string
		limits limits
		gen    generation
		want   int // seconds
		why    Reason
	}{
		{"one event", trailing, collected(trailing, 0), 5, ReasonQuiet},
		{"quiet counts from the last", trailing, collected(trailing, 0, 4, 8), 13, ReasonQuiet},
		{"max wait counts from the first", trailing, collected(trailing, 0, 4, 18), 20, ReasonMaxWait},
		{"full", trailing, collected(trailing, 0, 1, 2, 3), 3, ReasonMaxEvents},
		{"over full, with the time at which it filled", trailing, collected(trailing, 0, 1, 2, 3, 4), 3, ReasonMaxEvents},
		{"the limit was lowered", limits{quiet: time.Minute, maxEvents: 2}, collected(trailing, 0, 1, 2), 2, ReasonMaxEvents},
		{"window ignores later events", window, collected(window, 0, 4, 9), 10, ReasonMaxWait},
		{"quiet and max wait at once", limits{quiet: time.Second, maxWait: time.Second}, collected(trailing, 0), 1, ReasonQuiet},
	} {
		got, why := c.limits.due(c.gen)
		if !got.Equal(at(c.want)) || why != c.why {
			t.Errorf("%s: due %v for %s, want %v for %s", c.name, got, why, at(c.want), c.why)
		}
	}
}

func TestDueByHand(t *testing.T) {
	l := limits{quiet: 5 * time.Second}
	g := collected(l, 0, 1)
	b := buffer{open: g}.wanted(at(3))
	if got, why := l.due(b.open); !got.Equal(at(3)) || why != ReasonManual {
		t.Errorf("due %v for %s, want the time of the request", got, why)
	}
	if again := b.wanted(at(4)); again != b {
		t.Error("a second request moved the first")
	}
	if empty := (buffer{open: generation{number: 2}}); empty.wanted(at(3)) != empty {
		t.Error("an empty generation took a request")
	}
}

func TestNothingIsNeverDue(t *testing.T) {
	if got, why := (limits{quiet: 1, maxWait: 1, maxEvents: 1}).due(generation{number: 3}); !got.IsZero() || why != "" {
		t.Errorf("due %v for %q", got, why)
	}
}

// Proves D1. The model steps through time one second at a time, and checks at each moment
// which causes hold. due must give the first moment at which one holds.
func TestDueModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := limits{
			quiet:     time.Duration(rapid.IntRange(0, 5).Draw(rt, "quiet")) * time.Second,
			maxWait:   time.Duration(rapid.IntRange(0, 12).Draw(rt, "maxWait")) * time.Second,
			maxEvents: rapid.IntRange(0, 5).Draw(rt, "maxEvents"),
		}
		if l.quiet == 0 && l.maxWait == 0 {
			l.quiet = time.Second
		}
		var times []int
		now := 0
		for range rapid.IntRange(1, 8).Draw(rt, "events") {
			now += rapid.IntRange(0, 6).Draw(rt, "gap")
			times = append(times, now)
		}
		want, cause := stepped(l, times)
		got, why := l.due(collected(l, times...))
		if !got.Equal(at(want)) || why != cause {
			rt.Fatalf("events at %v: due %v for %s, model %v for %s", times, got, why, at(want), cause)
		}
	})
}

// stepped is the model of due for a generation with all events. Nothing was flushed
// between the events, so quiet counts only after the last one.
func stepped(l limits, times []int) (int, Reason) {
	first, last := times[0], times[len(times)-1]
	for now := first; ; now++ {
		since := func(s int) time.Duration { return at(now).Sub(at(s)) }
		switch {
		case l.maxEvents > 0 && len(times) >= l.maxEvents && now >= times[l.maxEvents-1]:
			return now, ReasonMaxEvents
		case l.quiet > 0 && now >= last && since(last) >= l.quiet:
			return now, ReasonQuiet
		case l.maxWait > 0 && since(first) >= l.maxWait:
			return now, ReasonMaxWait
		}
	}
}

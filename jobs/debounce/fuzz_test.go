package debounce

import (
	"math"
	"testing"
	"time"
)

// A buffer that can be read is due at a moment within its limits, for a reason, and is
// the same when it is stored again. Another event makes it due no earlier than that event
// or the old due time, whichever is earlier.
func FuzzDue(f *testing.F) {
	l := limits{quiet: time.Second, maxWait: time.Minute, maxEvents: 3}
	for _, b := range []buffer{
		{open: collected(l, 0, 1)},
		{open: collected(l, 0, 1, 2, 3)},
		buffer{open: collected(l, 0)}.wanted(at(5)),
		{open: generation{number: 1, count: 1}},
	} {
		f.Add(int64(l.quiet), int64(l.maxWait), l.maxEvents, b.appendTo(nil), int64(0))
		f.Add(int64(math.MaxInt64), int64(math.MaxInt64), 0, b.appendTo(nil), int64(math.MaxInt64))
	}
	f.Fuzz(func(t *testing.T, quiet, maxWait int64, maxEvents int, row []byte, later int64) {
		l := limits{time.Duration(quiet), time.Duration(maxWait), maxEvents}
		b, err := decodeBuffer(row)
		if err != nil || quiet < 0 || maxWait < 0 || quiet == 0 && maxWait == 0 || maxEvents < 0 || later < 0 {
			return
		}
		g := b.open
		due, why := l.due(g)
		if (why == "") != (g.count == 0) || due.IsZero() != (g.count == 0) {
			t.Fatalf("%+v of %+v is due %v for %q", l, g, due, why)
		}
		if g.count == 0 {
			return
		}
		if quiet > 0 && due.After(g.last.Add(l.quiet)) || maxWait > 0 && due.After(g.first.Add(l.maxWait)) ||
			!g.manual.IsZero() && due.After(g.manual) {
			t.Fatalf("%+v of %+v is due at %v, beyond its bounds", l, g, due)
		}
		stored, err := decodeBuffer(b.appendTo(nil))
		if err != nil {
			t.Fatalf("%+v is read as %v", b, err)
		}
		if again, reason := l.due(stored.open); !again.Equal(due) || reason != why {
			t.Fatalf("%+v of %+v is due %v for %q, and %v for %q when stored", l, g, due, why, again, reason)
		}
		if g.count == math.MaxInt {
			return
		}
		now := g.last.Add(time.Duration(later))
		next, _ := l.due(l.with(g, now))
		if next.Before(due) && next.Before(now) {
			t.Fatalf("%+v of %+v, due at %v, is due at %v after an event at %v", l, g, due, next, now)
		}
	})
}

package jobs

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// An occurrence is after the last one, none is skipped, and the cursor moves on.
func FuzzPeriods(f *testing.F) {
	f.Add(int64(time.Minute), int64(0), int64(90), false, uint8(0))
	f.Add(int64(math.MaxInt64), int64(-1<<35), int64(1<<40), true, uint8(1))
	f.Add(int64(math.MaxInt64/2+1), int64(-62135596800), int64(1<<33), true, uint8(2))
	f.Fuzz(func(t *testing.T, period, anchor, last int64, rate bool, missed uint8) {
		const century = 100 * 365 * 24 * 3600 * 1000
		c := Cursor{time.Unix(anchor%century, 0), time.Unix(last%century, 0)}
		s := Every(time.Duration(period))
		if rate {
			s = Rate(time.Duration(period))
		}
		if s.Validate() != nil {
			if !s.Next(c).IsZero() {
				t.Fatalf("%v is invalid and has an occurrence", s)
			}
			return
		}
		next := s.Next(c)
		if !next.After(c.Last) {
			t.Fatalf("%v: after %v comes %v", s, c.Last, next)
		}
		if rate && !c.Last.Before(c.Anchor) && next.Add(-s.period).After(c.Last) {
			t.Fatalf("%v: between %v and %v one is skipped", s, c.Last, next)
		}
		now := next.Add(time.Hour)
		moved, scheduled, _ := s.Take(c, "id", now, Missed(missed%3))
		if !scheduled.Equal(next) || !moved.Last.After(c.Last) || !s.Next(moved).After(next) {
			t.Fatalf("%v: %v was taken at %v: %v", s, next, now, moved)
		}
	})
}

// Jitter makes nothing early, and never more than its limit late.
func FuzzJitter(f *testing.F) {
	f.Add(int64(time.Hour), int64(time.Minute), int64(1e9), "a")
	f.Add(int64(1), int64(math.MaxInt64), int64(-1e9), "")
	f.Fuzz(func(t *testing.T, period, jitter, last int64, id string) {
		s := Rate(time.Duration(period)).WithJitter(time.Duration(jitter))
		if s.Validate() != nil {
			return
		}
		c := StartCursor(time.Unix(last%1e11, 0))
		next, due := s.Next(c), s.Due(c, id)
		if due.Before(next) || due.Add(-time.Duration(jitter)).After(next) || !due.Equal(s.Due(c, id)) {
			t.Fatalf("%v, jitter %v: due at %v for %v", s, time.Duration(jitter), due, next)
		}
	})
}

// field is one field of a cron table of this test, and the values it matches.
func field(b byte, low, high int) (text string, match func(int) bool) {
	span := high - low + 1
	n := low + int(b>>2)%span
	switch b % 4 {
	case 0:
		return "*", func(int) bool { return true }
	case 1:
		return fmt.Sprint(n), func(v int) bool { return v == n }
	case 2:
		step := 1 + int(b>>2)%span
		return fmt.Sprintf("%d-%d/%d", low, high, step), func(v int) bool { return (v-low)%step == 0 }
	default:
		return fmt.Sprintf("%d-%d", n, high), func(v int) bool { return v >= n }
	}
}

var fuzzZones = []string{"UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Santiago"}

// A cron table finds the same times as a walk from minute to minute, over the changes of
// the clock too.
func FuzzCron(f *testing.F) {
	spring, autumn := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC).Unix()
	f.Add([]byte{0, 0, 0, 0, 0}, spring, uint8(0))
	f.Add([]byte{30<<2 | 1, 2<<2 | 1, 0, 0, 0}, spring, uint8(1))
	f.Add([]byte{30<<2 | 1, 2<<2 | 1, 0, 0, 0}, autumn, uint8(1))
	f.Add([]byte{14<<2 | 2, 0, 0, 0, 0}, autumn, uint8(1))
	f.Add([]byte{14<<2 | 2, 1<<2 | 3, 0, 0, 0}, autumn, uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, at int64, zone uint8) {
		if len(b) != 5 {
			return
		}
		name := fuzzZones[int(zone)%len(fuzzZones)]
		loc, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		var texts [5]string
		var match [5]func(int) bool
		for i, bounds := range [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}} {
			texts[i], match[i] = field(b[i], bounds[0], bounds[1])
		}
		expr := fmt.Sprintf("%s %s %s %s %s", texts[0], texts[1], texts[2], texts[3], texts[4])
		s := Cron(expr, name)
		if s.Validate() != nil { // 31 February
			return
		}
		from := time.Unix((at%(80*365*24*3600)+80*365*24*3600)%(80*365*24*3600), 0).UTC()
		next := s.Next(StartCursor(from))
		if !next.After(from) {
			t.Fatalf("%s in %s: after %v comes %v", expr, name, from, next)
		}
		want := naive(match, texts[1] == "*", from, loc)
		if want.IsZero() && next.Sub(from) > walk || want.Equal(next) {
			return
		}
		t.Fatalf("%s in %s: after %v comes %v, want %v", expr, name, from.In(loc), next.In(loc), want.In(loc))
	})
}

// walk is how far naive looks.
const walk = 3 * 24 * time.Hour

func naive(match [5]func(int) bool, eachHour bool, from time.Time, loc *time.Location) time.Time {
	fits := func(w time.Time) bool { // w is a time by the wall, as UTC
		return !slices.Contains([]bool{match[0](w.Minute()), match[1](w.Hour()), match[2](w.Day()), match[3](int(w.Month())), match[4](int(w.Weekday()))}, false)
	}
	offset := func(t time.Time) time.Duration {
		_, s := t.In(loc).Zone()
		return time.Duration(s) * time.Second
	}
	for at := from.Truncate(time.Minute).Add(time.Minute); at.Sub(from) <= walk; at = at.Add(time.Minute) {
		now, before := offset(at), offset(at.Add(-3*time.Hour))
		gap := now - before
		repeated := gap < 0 && offset(at.Add(gap)) == before // the wall has shown this time before
		inGap := gap > 0 && offset(at.Add(-gap)) == before   // as long after the change as the gap is
		switch {
		case fits(at.Add(now)) && (eachHour || !repeated):
			return at
		case inGap && fits(at.Add(before)):
			return at
		}
	}
	return time.Time{}
}

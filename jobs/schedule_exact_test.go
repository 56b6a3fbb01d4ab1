package jobs_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// nanos is a time in nanoseconds, which an int64 holds for 292 years only.
func nanos(t time.Time) *big.Int {
	n := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(int64(time.Second)))
	return n.Add(n, big.NewInt(int64(t.Nanosecond())))
}

// Proves C2: a fixed rate happens at exact multiples of its period, also if the period, or
// the time since the start of the job, is longer than a Duration holds.
func TestRateOverCenturies(t *testing.T) {
	const day = 24 * time.Hour
	anchor := time.Date(1700, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, d := range []time.Duration{
		time.Millisecond, time.Hour + 1, 7 * day, 100*365*day + 1, math.MaxInt64/2 - 1, math.MaxInt64 / 2, math.MaxInt64/2 + 1, math.MaxInt64 - 1, math.MaxInt64,
	} {
		for _, years := range []int{-300, -1, 0, 1, 145, 146, 147, 292, 293, 438, 439, 440, 585, 600, 2000} {
			for _, more := range []time.Duration{-1, 0, 1, d - 1, d, d + 1} {
				last := anchor.AddDate(years, 0, 0).Add(more)
				period, passed := big.NewInt(int64(d)), new(big.Int).Sub(nanos(last), nanos(anchor))
				k := big.NewInt(0)
				if passed.Sign() > 0 {
					k.Div(passed, period)
				}
				want := k.Mul(k.Add(k, big.NewInt(1)), period)
				want.Add(want, nanos(anchor))
				next := jobs.Rate(d).Next(jobs.Cursor{Anchor: anchor, Last: last})
				if got := nanos(next); got.Cmp(want) != 0 {
					t.Errorf("a rate of %d ns, %d years and %v on: %s, want %s ns of Unix time", d, years, more, got, want)
				}
			}
		}
	}
}

// Proves C2: a period below a millisecond is refused with a text that says so, and a
// millisecond is not.
func TestShortestPeriod(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:         "-1s",
		0:                    "0s",
		5000:                 "5µs",
		time.Millisecond - 1: "999.999µs",
		time.Millisecond:     "",
		math.MaxInt64:        "",
	} {
		if want != "" {
			want = "jobs: invalid: schedule: period " + want + " is below 1ms; write it with its unit, as in 5*time.Second"
		}
		for _, s := range []jobs.Schedule{jobs.Every(d), jobs.Rate(d)} {
			got := ""
			if err := s.Validate(); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s: %q, want %q", s, got, want)
			}
		}
	}
}

// Proves C2: a jitter of n makes an occurrence later by 0 to n, and by each of these for
// some job; the same job and occurrence always get the same.
func TestJitterIsWithinItsLimit(t *testing.T) {
	c := jobs.StartCursor(time.Unix(0, 0).UTC())
	for limit := range time.Duration(4) {
		s := jobs.Every(time.Hour).WithJitter(limit)
		byJob, byTime := map[time.Duration]int{}, map[time.Duration]int{}
		for i := range 100 {
			id, later := fmt.Sprint("ticker/", i), jobs.Cursor{Last: c.Last.Add(time.Duration(i) * time.Minute)}
			due := s.Due(c, id)
			if again := s.Due(c, id); again != due {
				t.Errorf("a jitter of %d ns: %v, then %v", limit, due, again)
			}
			byJob[due.Sub(s.Next(c))]++
			byTime[s.Due(later, "ticker/a").Sub(s.Next(later))]++
		}
		for added := time.Duration(-1); added <= limit+1; added++ {
			want := added >= 0 && added <= limit
			if byJob[added] > 0 != want || byTime[added] > 0 != want {
				t.Errorf("a jitter of %d ns adds %d ns: %v by job and %v by time", limit, added, byJob[added] > 0, byTime[added] > 0)
			}
		}
		if len(byJob) != int(limit)+1 || len(byTime) != int(limit)+1 {
			t.Errorf("a jitter of %d ns: %v, %v", limit, byJob, byTime)
		}
	}
}

// Proves C2: a search that goes over several changes of the clock finds the first and the
// last second before a change, and the first one after it.
func TestCronFarAheadAtAChange(t *testing.T) {
	for _, c := range []struct{ expr, zone, after, want string }{
		// Berlin changes at 1:00 UTC, from 2:00 to 3:00 in spring and from 3:00 to 2:00 in autumn.
		{"0 30 0 25 10 *", "Europe/Berlin", "2026-01-01 00:00:00", "2026-10-24 22:30:00"},
		{"59 59 1 29 3 *", "Europe/Berlin", "2025-05-01 00:00:00", "2026-03-29 00:59:59"},
		{"0 0 2 29 3 *", "Europe/Berlin", "2025-05-01 00:00:00", "2026-03-29 01:00:00"},
		{"59 59 2 29 3 *", "Europe/Berlin", "2025-05-01 00:00:00", "2026-03-29 01:59:59"},
		{"0 0 3 29 3 *", "Europe/Berlin", "2025-05-01 00:00:00", "2026-03-29 01:00:00"},
		{"0 0 2 25 10 *", "Europe/Berlin", "2026-01-01 00:00:00", "2026-10-25 00:00:00"},
		{"59 59 2 25 10 *", "Europe/Berlin", "2026-01-01 00:00:00", "2026-10-25 00:59:59"},
		{"0 0 3 25 10 *", "Europe/Berlin", "2026-01-01 00:00:00", "2026-10-25 02:00:00"},
		{"0 0 3 25 10 *", "Europe/Berlin", "2026-10-25 01:59:59", "2026-10-25 02:00:00"},
		{"0 0 3 25 10 *", "Europe/Berlin", "2026-10-25 02:00:00", "2027-10-25 01:00:00"},
		{"59 59 * 25 10 *", "Europe/Berlin", "2026-10-25 00:59:58", "2026-10-25 00:59:59"},
		{"59 59 * 25 10 *", "Europe/Berlin", "2026-10-25 00:59:59", "2026-10-25 01:59:59"},
		// New York changes at 7:00 UTC in spring and at 6:00 UTC in autumn.
		{"59 59 1 8 3 *", "America/New_York", "2025-05-01 00:00:00", "2026-03-08 06:59:59"},
		{"0 30 2 8 3 *", "America/New_York", "2025-05-01 00:00:00", "2026-03-08 07:30:00"},
		{"0 30 6 8 3 *", "America/New_York", "2025-05-01 00:00:00", "2026-03-08 10:30:00"},
		{"0 0 2 1 11 *", "America/New_York", "2026-01-01 00:00:00", "2026-11-01 07:00:00"},
		{"59 59 1 1 11 *", "America/New_York", "2026-01-01 00:00:00", "2026-11-01 05:59:59"},
		{"0 30 6 1 11 *", "America/New_York", "2026-01-01 00:00:00", "2026-11-01 11:30:00"},
		// A zone without changes, and the last day of a leap year that only a rule tells of.
		{"0 0 0 1 1 *", "Asia/Kolkata", "2026-01-01 00:00:00", "2026-12-31 18:30:00"},
		{"0 30 12 31 12 *", "America/Santiago", "2040-01-01 00:00:00", "2040-12-31 15:30:00"},
		{"0 0 0 1 1 *", "America/Santiago", "2040-12-31 12:00:00", "2041-01-01 03:00:00"},
	} {
		s := jobs.Cron(c.expr, c.zone)
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if got := s.Next(jobs.Cursor{Last: parsed(t, c.after)}).Format(time.DateTime); got != c.want {
			t.Errorf("%s after %s: %s, want %s", s, c.after, got, c.want)
		}
	}
}

// Proves J9: a snooze is told with its wait, which is never less than none.
func TestWaitOfASnooze(t *testing.T) {
	for d, want := range map[time.Duration]string{-1: "0s", 0: "0s", 1: "1ns", time.Hour: "1h0m0s"} {
		if got := jobs.Snooze(d).Error(); got != "jobs: snoozed for "+want {
			t.Errorf("a snooze of %v: %q", d, got)
		}
	}
}

// Proves J9: the failures of a run are those before its last RunNow and those after it.
func TestFailuresOfARun(t *testing.T) {
	if n := (jobs.Run{Earlier: 3, Failures: 2}).Failed(); n != 5 {
		t.Errorf("three failures and two are %d", n)
	}
}

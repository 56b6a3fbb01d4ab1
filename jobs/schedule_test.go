package jobs

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(t *testing.T, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Proves C2: each schedule's next time for a cursor.
func TestScheduleNext(t *testing.T) {
	hour := time.Hour
	tests := []struct {
		name string
		s    Schedule
		c    Cursor
		want string
	}{
		{"fixed delay after the end", Every(hour), Cursor{noon, noon.Add(7 * time.Minute)}, "2026-03-01T13:07:00Z"},
		{"fixed rate after the start", Rate(hour), StartCursor(noon), "2026-03-01T13:00:00Z"},
		{"fixed rate keeps its anchor", Rate(hour), Cursor{noon, noon.Add(150 * time.Minute)}, "2026-03-01T15:00:00Z"},
		{"fixed rate on a multiple", Rate(hour), Cursor{noon, noon.Add(2 * hour)}, "2026-03-01T15:00:00Z"},
		{"cron with seconds", Cron("30 */5 * * * *", ""), StartCursor(noon), "2026-03-01T12:00:30Z"},
		{"cron of five fields", Cron("*/5 * * * *", ""), StartCursor(noon), "2026-03-01T12:05:00Z"},
		{"cron in a zone", Cron("0 0 9 * * *", "Europe/Paris"), StartCursor(noon), "2026-03-02T08:00:00Z"},
		{"cron in the same zone in summer", Cron("0 0 9 * * *", "Europe/Paris"), StartCursor(noon.AddDate(0, 3, 0)), "2026-06-02T07:00:00Z"},
		{"cron at a skipped hour", Cron("0 30 2 * * *", "America/New_York"),
			StartCursor(time.Date(2026, 3, 8, 5, 0, 0, 0, time.UTC)), "2026-03-08T07:30:00Z"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.s.Validate(); err != nil {
				t.Fatal(err)
			}
			if got, want := tt.s.Next(tt.c), at(t, tt.want); !got.Equal(want) {
				t.Errorf("%s after %s: got %s, want %s", tt.s, tt.c.Last, got, want)
			}
		})
	}
	if got := (Schedule{}).Next(StartCursor(noon)); !got.IsZero() {
		t.Errorf("the zero schedule has an occurrence at %s", got)
	}
}

// Proves C2: missed ticks run once, each, or not at all.
func TestScheduleMissed(t *testing.T) {
	const id = "ticker/a"
	c := StartCursor(noon)
	now := noon.Add(5*time.Hour + 20*time.Minute) // down for five ticks and twenty minutes
	t.Run("once", func(t *testing.T) {
		moved, scheduled, run := Rate(time.Hour).Take(c, id, now, RunOnce)
		if !run || !scheduled.Equal(noon.Add(time.Hour)) {
			t.Errorf("run %v for %s, want a run for the first missed tick", run, scheduled)
		}
		if next := Rate(time.Hour).Next(moved); !next.Equal(noon.Add(6 * time.Hour)) {
			t.Errorf("next at %s, want the first tick to come", next)
		}
	})
	t.Run("each", func(t *testing.T) {
		var ticks []time.Time
		for c := c; !Rate(time.Hour).Due(c, id).After(now); {
			moved, scheduled, run := Rate(time.Hour).Take(c, id, now, RunEach)
			if !run {
				t.Fatal("a tick was dropped")
			}
			ticks, c = append(ticks, scheduled), moved
		}
		if len(ticks) != 5 || !ticks[4].Equal(noon.Add(5*time.Hour)) {
			t.Errorf("ticks %v, want five", ticks)
		}
	})
	t.Run("skip", func(t *testing.T) {
		moved, _, run := Rate(time.Hour).Take(c, id, now, Skip)
		if run {
			t.Error("a missed tick ran")
		}
		if next := Rate(time.Hour).Next(moved); !next.Equal(noon.Add(6 * time.Hour)) {
			t.Errorf("next at %s, want the first tick to come", next)
		}
		if _, _, run := Rate(time.Hour).Take(c, id, noon.Add(time.Hour+time.Second), Skip); !run {
			t.Error("a tick one second late was dropped")
		}
	})
	t.Run("a fixed delay misses nothing", func(t *testing.T) {
		if _, _, run := Every(time.Hour).Take(c, id, now, Skip); !run {
			t.Error("an overdue fixed delay was dropped")
		}
	})
}

// Proves C2: every mistake in a schedule is an error that says so. Case 6: a bare
// number that was meant as milliseconds is one, and not a hot loop.
func TestScheduleMistakes(t *testing.T) {
	for _, s := range []Schedule{
		Every(0), Every(5000), Rate(60), Rate(-time.Second), Every(time.Hour).WithJitter(-1),
		Cron("", ""), Cron("61 * * * * *", ""), Cron("* * *", ""), Cron("0 0 9 * * *", "Mars/Olympus"),
		Cron("@every 5s", ""), Cron("TZ=UTC 0 0 9 * * *", ""), Cron("0 0 0 30 2 *", ""),
	} {
		if err := s.Validate(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", s, err)
		}
		if got := s.Next(StartCursor(noon)); !got.IsZero() {
			t.Errorf("%s: has an occurrence at %s", s, got)
		}
	}
}

var zones = []string{"", "Europe/Paris", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kolkata"}

func drawSchedule(t *rapid.T) Schedule {
	period := func() time.Duration {
		return time.Duration(rapid.Int64Range(int64(minPeriod), int64(48*time.Hour)).Draw(t, "period"))
	}
	var s Schedule
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		s = Every(period())
	case 1:
		s = Rate(period())
	default:
		s = Cron(rapid.SampledFrom([]string{
			"0 30 2 * * *", "0 0 0 * * *", "*/7 * * * * *", "0 15 1-3 * * *", "0 */20 * * * *", "0 30 1 * * 0", "0 0 12 L * *", "59 59 23 31 12 *",
		}).Draw(t, "expr"), rapid.SampledFrom(zones).Draw(t, "zone"))
	}
	if rapid.Bool().Draw(t, "jittered") {
		s = s.WithJitter(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "jitter")))
	}
	return s
}

// Proves C2, Case 24: occurrences move forward only, jitter only adds, and after a stop
// of any length one take brings RunOnce and Skip back to the present: no burst.
func TestScheduleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchedule(t)
		start := time.Unix(rapid.Int64Range(1_600_000_000, 1_900_000_000).Draw(t, "start"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
		m := Missed(rapid.IntRange(0, 2).Draw(t, "missed"))
		c, now := StartCursor(start), start
		var last time.Time
		for range 20 {
			occurrence, due := s.Next(c), s.Due(c, "id")
			if !occurrence.After(c.Last) {
				t.Fatalf("%s: occurrence %s is not after %s", s, occurrence, c.Last)
			}
			if due.Before(occurrence) || due.Sub(occurrence) > s.jitter {
				t.Fatalf("%s: due %s for %s", s, due, occurrence)
			}
			now = latest(now, due).Add(time.Duration(rapid.Int64Range(0, int64(72*time.Hour)).Draw(t, "late")))
			moved, scheduled, _ := s.Take(c, "id", now, m)
			if !scheduled.After(last) {
				t.Fatalf("%s: scheduled %s twice", s, scheduled)
			}
			last, c = scheduled, s.Ended(moved, now)
			if next := s.Next(c); m != RunEach && !next.After(now) {
				t.Fatalf("%s: after a take at %s the next is %s", s, now, next)
			}
		}
	})
}

// Proves C2: across the change to and from summer time a daily job runs once
// each day, and an hourly one each hour.
func TestCronAcrossDST(t *testing.T) {
	for _, zone := range zones {
		daily, hourly := Cron("0 30 1 * * *", zone), Cron("0 0 * * * *", zone)
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		day := time.Date(2026, 1, 1, 12, 0, 0, 0, loc)
		for range 400 {
			next := daily.Next(StartCursor(day))
			if d := next.Sub(day); d < 10*time.Hour || d > 16*time.Hour {
				t.Fatalf("%q: the run after %s is at %s", zone, day, next)
			}
			day = day.AddDate(0, 0, 1)
		}
		c := StartCursor(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		for range 24 * 400 {
			next := hourly.Next(c)
			if d := next.Sub(c.Last); d > 90*time.Minute {
				t.Fatalf("%q: no run from %s to %s", zone, c.Last, next)
			}
			c.Last = next
		}
	}
}

// Proves C2: an expression has a next time even if its days are many years apart. Around
// 2100 eight years lie between leap days, and forty if the day of the week must fit too.
func TestCronOfLeapDays(t *testing.T) {
	for expr, gap := range map[string][2]string{
		"0 0 0 29 2 *":   {"2096-02-29", "2104-02-29"},
		"0 0 0 29 2 MON": {"2072-02-29", "2112-02-29"},
	} {
		from, err := time.Parse(time.DateOnly, gap[0])
		if err != nil {
			t.Fatal(err)
		}
		next := Cron(expr, "").Next(Cursor{Last: from}).Format(time.DateOnly)
		if next != gap[1] {
			t.Errorf("%q after %s: %s, want %s", expr, gap[0], next, gap[1])
		}
	}
}

// Proves C2: a time that a zone repeats in autumn happens once, also if a caller asks
// again right after it. With an hour of * it happens each time.
func TestCronOfARepeatedHour(t *testing.T) {
	from := time.Date(2001, 10, 28, 0, 0, 0, 0, time.UTC) // in Berlin 2:30 comes at 0:30 and at 1:30
	for expr, want := range map[string]time.Duration{"0 30 2 * * *": 25 * time.Hour, "0 30 * * * *": time.Hour} {
		s := Cron(expr, "Europe/Berlin")
		first := s.Next(Cursor{Last: from})
		second := s.Next(Cursor{Last: first})
		if first.Sub(from) != 30*time.Minute || second.Sub(first) != want {
			t.Errorf("%q: %v and %v, want %v apart", expr, first, second, want)
		}
	}
}

// Proves C2: the working day nearest to the 31st is not in a month that has none.
func TestCronOfAWorkdayThatIsMissing(t *testing.T) {
	from := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	if next := Cron("0 0 0 31W * *", "").Next(Cursor{Last: from}).Format(time.DateOnly); next != "2026-03-31" {
		t.Errorf("after January the next is %s, want 2026-03-31", next)
	}
}

// Proves C2: L, W and # name the last day, the working day nearest to a day, and a
// weekday of a certain week.
func TestCronOfSpecialDays(t *testing.T) {
	for expr, want := range map[string][]string{ // in 2026; the 1st of February is a Sunday
		"0 0 0 L * *":     {"2026-01-31", "2026-02-28", "2026-03-31"},
		"0 0 0 L-3 * *":   {"2026-01-28", "2026-02-25", "2026-03-28"},
		"0 0 0 LW * *":    {"2026-01-30", "2026-02-27", "2026-03-31"},
		"0 0 0 1W * *":    {"2026-01-01", "2026-02-02", "2026-03-02"},
		"0 0 0 14W * *":   {"2026-01-14", "2026-02-13", "2026-03-13"},
		"0 0 0 15W * *":   {"2026-01-15", "2026-02-16", "2026-03-16"},
		"0 0 0 * * MON#1": {"2026-01-05", "2026-02-02", "2026-03-02"},
		"0 0 0 * * MON#2": {"2026-01-12", "2026-02-09", "2026-03-09"},
		"0 0 0 * * SUN#1": {"2026-01-04", "2026-02-01", "2026-03-01"},
		"0 0 0 * * SUN#5": {"2026-03-29", "2026-05-31", "2026-08-30"},
		"0 0 0 * * FRI#L": {"2026-01-30", "2026-02-27", "2026-03-27"},
		"0 0 0 * * SAT#L": {"2026-01-31", "2026-02-28", "2026-03-28"},
	} {
		s := Cron(expr, "")
		if err := s.Validate(); err != nil {
			t.Error(err)
			continue
		}
		at := time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC)
		for _, day := range want {
			if at = s.Next(Cursor{Last: at}); at.Format(time.DateOnly) != day {
				t.Errorf("%q: %s, want %s", expr, at.Format(time.DateOnly), day)
			}
		}
	}
}

// Proves C2: a job that has no next occurrence is due at no time, with a jitter too.
func TestNoOccurrenceHasNoJitter(t *testing.T) {
	for _, s := range []Schedule{{}, Every(0)} {
		if at := s.WithJitter(time.Hour).Due(StartCursor(noon), "a"); !at.IsZero() {
			t.Errorf("%s is due at %s", s, at)
		}
	}
}

// Proves C2: an occurrence that has just passed comes again in the next minute, hour and
// day, also late in the day.
func TestCronAfterItsLastSecond(t *testing.T) {
	at := time.Date(2026, 1, 1, 23, 10, 6, 0, time.UTC)
	for expr, want := range map[string]time.Time{
		"5 * * * * *":   time.Date(2026, 1, 1, 23, 11, 5, 0, time.UTC),
		"0 5 * * * *":   time.Date(2026, 1, 2, 0, 5, 0, 0, time.UTC),
		"1 10 23 * * *": time.Date(2026, 1, 2, 23, 10, 1, 0, time.UTC),
		"7 10 23 * * *": time.Date(2026, 1, 1, 23, 10, 7, 0, time.UTC),
	} {
		if next := Cron(expr, "").Next(Cursor{Last: at}); !next.Equal(want) {
			t.Errorf("%q: %v, want %v", expr, next, want)
		}
	}
}

// Proves C2: Skip drops an occurrence that is later than a minute, or than half the way
// to the next one, and none that is exactly as late as that.
func TestSkipAtItsGrace(t *testing.T) {
	for period, grace := range map[time.Duration]time.Duration{
		time.Hour: time.Minute, 2 * time.Minute: time.Minute, 2*time.Minute - 2: time.Minute - 1, 10 * time.Second: 5 * time.Second,
	} {
		due := noon.Add(period)
		for late, want := range map[time.Duration]bool{0: true, grace: true, grace + 1: false} {
			if _, _, run := Rate(period).Take(StartCursor(noon), "a", due.Add(late), Skip); run != want {
				t.Errorf("every %v, %v late: run is %t", period, late, run)
			}
		}
	}
}

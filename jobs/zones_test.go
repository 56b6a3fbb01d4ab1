package jobs

import (
	"archive/zip"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	allZones  = flag.Bool("zones.all", false, "walk each zone of the tz database in TestCronOfEachZone")
	zoneYears = flag.Int("zones.years", 1, "how many years TestCronOfEachZone walks")
)

// minuteTable is a cron table, written for Schedule and for the walk of
// TestCronOfEachZone.
type minuteTable struct {
	expr     string
	minutes  []int
	hours    []int // nil: each
	weekdays []int // nil: each
}

var minuteTables = []minuteTable{
	{"0 0 * * *", []int{0}, []int{0}, nil},
	{"0 9 * * *", []int{0}, []int{9}, nil},
	{"30 1 * * *", []int{30}, []int{1}, nil},
	{"15,45 2 * * *", []int{15, 45}, []int{2}, nil},
	{"59 23 * * *", []int{59}, []int{23}, nil},
	{"10,50 0-3 * * *", []int{10, 50}, []int{0, 1, 2, 3}, nil},
	{"1 0 * * SUN", []int{1}, []int{0}, []int{0}},
	{"20 * * * *", []int{20}, nil, nil},
}

// minutesOfWeek is a week in minutes from Thursday on, as 1970 began.
const minutesOfWeek = 7 * 24 * 60

// ofWeek are the numbers of the tables that have a minute of the week.
var ofWeek = func() (week [minutesOfWeek][]int) {
	for i, m := range minuteTables {
		for minute := range week {
			day, hour := (minute/(24*60)+4)%7, minute/60%24
			if slices.Contains(m.minutes, minute%60) && (m.hours == nil || slices.Contains(m.hours, hour)) &&
				(m.weekdays == nil || slices.Contains(m.weekdays, day)) {
				week[minute] = append(week[minute], i)
			}
		}
	}
	return week
}()

// clockFace is a clock on the wall of a zone, read once a minute. It writes down the
// times it has shown, and so knows which minutes it skips or repeats.
type clockFace struct {
	zone *time.Location
	last int64             // the civil minute that it showed last
	high int64             // the latest that it has shown
	late map[int64][]int64 // the skipped minutes that fall on a minute
}

// look returns the time that the clock shows at a minute of Unix time, whether it has
// shown that time before, and the skipped minutes that fall on it.
func (c *clockFace) look(minute int64) (now int64, repeated bool, late []int64) {
	_, offset := time.Unix(minute*60, 0).In(c.zone).Zone()
	now = minute + int64(offset/60)
	for skipped := c.last + 1; c.last != 0 && skipped < now; skipped++ {
		if skipped > c.high {
			at := minute - 1 + skipped - c.last
			c.late[at] = append(c.late[at], skipped)
		}
	}
	repeated = c.last != 0 && now <= c.high
	c.last, c.high = now, max(c.high, now)
	if len(c.late) > 0 {
		late = c.late[minute]
		delete(c.late, minute)
	}
	return now, repeated, late
}

// occurrences are the minutes of Unix time at which each table happens.
func occurrences(zone *time.Location, from, to int64) [][]int64 {
	out := make([][]int64, len(minuteTables))
	face := clockFace{zone: zone, late: map[int64][]int64{}}
	const before = 3 * 24 * 60 // so that it has seen the skipped and repeated times at the begin
	for minute := from - before; minute < to; minute++ {
		now, repeated, late := face.look(minute)
		if minute < from {
			continue
		}
		for _, i := range ofWeek[now%minutesOfWeek] {
			if !repeated || minuteTables[i].hours == nil {
				out[i] = append(out[i], minute)
			}
		}
		for _, skipped := range late {
			for _, i := range ofWeek[skipped%minutesOfWeek] {
				if n := len(out[i]); n == 0 || out[i][n-1] != minute {
					out[i] = append(out[i], minute)
				}
			}
		}
	}
	return out
}

// hardZones change their clocks at midnight, by half an hour, twice within a month,
// by a whole day, or after 2037 by rule only.
var hardZones = []string{
	"America/Havana", "America/Santiago", "Africa/Cairo", "Asia/Beirut", "Australia/Lord_Howe", "Europe/Paris",
	"America/St_Johns", "Africa/Casablanca", "Asia/Gaza", "Asia/Tehran", "Europe/Dublin",
}

// Proves C2, Case SC2: over years of each zone, a table happens at exactly the minutes at
// which a clock on the wall shows its times. Times that the clock skips happen later, by
// as much as it skips. Times that it repeats happen once.
func TestCronOfEachZone(t *testing.T) {
	names, years := hardZones, []int{2023}
	if *allZones {
		names, years = zonesOfGo(t), []int{2000}
		t.Cleanup(func() { fmt.Printf("{\"cron_zone_years\":%d}\n", len(names)**zoneYears) })
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, year := range years {
				compareWithClock(t, name, year, *zoneYears)
			}
		})
	}
	t.Run("a change at midnight", func(t *testing.T) { compareWithClock(t, "America/Sao_Paulo", 2017, 1) })
	t.Run("a day left out", func(t *testing.T) { compareWithClock(t, "Pacific/Apia", 2011, 1) })
	t.Run("years that only a rule tells of", func(t *testing.T) { compareWithClock(t, "America/Santiago", 2039, 2) })
}

func compareWithClock(t *testing.T, name string, year, years int) {
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(years, 0, 0)
	for i, want := range occurrences(zone, from.Unix()/60, to.Unix()/60) {
		s := Cron(minuteTables[i].expr, name)
		at := from.Add(-time.Nanosecond)
		for _, minute := range want {
			next := s.Next(Cursor{Last: at})
			if at = time.Unix(minute*60, 0).UTC(); !next.Equal(at) {
				t.Fatalf("%s: comes at %v, want %v", s, next.In(zone), at.In(zone))
			}
		}
		if next := s.Next(Cursor{Last: at}); next.Before(to) {
			t.Fatalf("%s: comes at %v too", s, next.In(zone))
		}
	}
}

// zonesOfGo are the names of the zones that Go brings along. Zones with equal bytes are
// named once.
func zonesOfGo(t *testing.T) (names []string) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(goroot)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	known := map[uint32]bool{}
	for _, f := range r.File {
		if !strings.HasSuffix(f.Name, "/") && !known[f.CRC32] {
			known[f.CRC32] = true
			names = append(names, f.Name)
		}
	}
	return names
}

package jobs

import (
	"fmt"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"
)

// cronSyntax is five fields (minute, hour, day of month, month, day of week),
// or six with seconds first, and names such as @daily. Where both a day of the
// month and a day of the week are given, both must match.
const cronSyntax = cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow |
	cron.Descriptor | cron.DowNth | cron.DowLast | cron.DomL | cron.DomW

var cronParser = cron.MustNewParser(cronSyntax)

// longestGapYears is how far apart two days can be that an expression names: a 29th
// of February on a certain day of the week, around a year such as 2100 that has none.
const longestGapYears = 40

// cronTable is a parsed expression in its time zone.
type cronTable struct {
	spec  string // for people
	expr  string
	table fields
	zone  *time.Location
}

// Cron runs at the times that expr names in the time zone, such as
// Cron("0 */5 * * * *", "Europe/Paris"). An expression has six fields, seconds
// first, or five, which then means second 0; L, W and # and names such as
// @daily may be used. An empty zone means UTC.
//
// A time that a zone skips in spring happens as much later as the gap is long:
// where clocks go from 2:00 to 3:00, 2:15 and 2:45 happen at 3:15 and 3:45. Two
// times that thereby fall together happen once. A time that a zone repeats in autumn
// happens once, the first time, unless the hour is *: then it happens each time.
func Cron(expr, zone string) Schedule {
	table, err := parseCron(expr, zone)
	if err != nil {
		err = fmt.Errorf("%w: schedule: cron %q in %q: %w", ErrInvalid, expr, zone, err)
	}
	table.spec, table.expr = strings.TrimSpace(expr+" "+zone), expr
	return Schedule{kind: byCron, cron: table, err: err}
}

func parseCron(expr, zone string) (cronTable, error) {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return cronTable{}, err
	}
	if strings.Contains(expr, "TZ=") {
		return cronTable{}, fmt.Errorf("the zone is an argument of its own")
	}
	parsed, err := cronParser.Parse(expr)
	if err != nil {
		return cronTable{}, err
	}
	table, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return cronTable{}, fmt.Errorf("a period is not a time table; use Every or Rate")
	}
	c := cronTable{table: fields{table}, zone: loc}
	if c.next(time.Unix(0, 0)).IsZero() {
		return cronTable{}, fmt.Errorf("no day matches")
	}
	return c, nil
}

// widestShift is more seconds than any zone moves its clocks by. The widest shift is
// that of a zone which crosses the date line.
const widestShift = 48 * 60 * 60

// next returns the first occurrence after t, in UTC, or zero. It looks at each span
// between two changes of the clock: at the civil times that the clock shows in it,
// and at those that the change before it skips, which happen by the offset of before.
func (c cronTable) next(t time.Time) time.Time {
	after := t.Unix() + 1
	s := search{c.table, after, t.AddDate(longestGapYears+1, 0, 0).Unix(), forever}
	before := spanAt(c.zone, after-widestShift)
	shown := before.to + before.offset // the latest civil time so far
	s.look(-forever, shown, before.offset)
	for before.to < min(s.found, s.last) {
		change, now := before.to, spanAt(c.zone, before.to)
		s.look(max(shown, change+before.offset), change+now.offset, before.offset)
		begin := change + now.offset
		if !c.table.eachHour() {
			begin = max(begin, shown)
		}
		s.look(begin, now.to+now.offset, now.offset)
		before, shown = now, max(shown, now.to+now.offset)
	}
	if s.found == forever {
		return time.Time{}
	}
	return time.Unix(s.found, 0).UTC()
}

// search is for the first occurrence. All but the table are in Unix time.
type search struct {
	table fields
	after int64 // no occurrence is before it
	last  int64 // nor after it
	found int64 // the first so far; forever if there is none
}

// look searches the civil times [from, to) at an offset.
func (s *search) look(from, to, offset int64) {
	from, to = max(from, s.after+offset), min(to, min(s.found, s.last)+offset)
	if civil := s.table.next(from, to); civil < to {
		s.found = civil - offset
	}
}

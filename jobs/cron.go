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

// longestGapYears is how far apart two days can be that an expression names: a 29th
// of February on a certain day of the week, around a year such as 2100 that has none.
const longestGapYears = 40

// cronTable is a parsed expression in its time zone.
type cronTable struct {
	spec  string
	table *cron.SpecSchedule
}

// Cron runs at the times that expr names in the time zone, such as
// Cron("0 */5 * * * *", "Europe/Paris"). An expression has six fields, seconds
// first, or five, which then means second 0; L, W and # and names such as
// @daily may be used. An empty zone means UTC.
//
// A time that a zone skips in spring happens as much later as the gap is long,
// and one that it repeats in autumn happens once, unless the hour is *.
func Cron(expr, zone string) Schedule {
	table, err := parseCron(expr, zone)
	if err != nil {
		err = fmt.Errorf("%w: schedule: cron %q in %q: %w", ErrInvalid, expr, zone, err)
	}
	return Schedule{kind: byCron, cron: cronTable{strings.TrimSpace(expr + " " + zone), table}, err: err}
}

func parseCron(expr, zone string) (*cron.SpecSchedule, error) {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, err
	}
	if strings.Contains(expr, "TZ=") {
		return nil, fmt.Errorf("the zone is an argument of its own")
	}
	parser, err := cron.TryNewParser(cronSyntax)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.WithMaxSearchYears(longestGapYears).Parse(expr)
	if err != nil {
		return nil, err
	}
	table, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("a period is not a time table; use Every or Rate")
	}
	table.Location = loc
	if table.Next(time.Unix(0, 0)).IsZero() {
		return nil, fmt.Errorf("no day matches")
	}
	return table, nil
}

// next returns the first occurrence after t, in UTC, or zero.
func (c cronTable) next(t time.Time) time.Time {
	at := c.table.Next(t)
	for !at.IsZero() && c.table.Hour&anyHour == 0 && repeated(at.In(c.table.Location)) {
		at = c.table.Next(at)
	}
	if at.IsZero() || !at.After(t) {
		return time.Time{}
	}
	return at.UTC()
}

// anyHour is the bit that the parser sets for an hour of *.
const anyHour = 1 << 63

// repeated reports whether the clocks of at's zone, set back not long ago, have shown
// its time before.
func repeated(at time.Time) bool {
	const longest = 3 * time.Hour // more than any zone sets them back
	_, was := at.Add(-longest).Zone()
	_, is := at.Zone()
	back := time.Duration(was-is) * time.Second
	_, before := at.Add(-back).Zone()
	return back > 0 && before == was
}

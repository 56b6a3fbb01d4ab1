package jobs

import (
	"math"
	"math/bits"
	"time"

	cron "github.com/netresearch/go-cron"
)

// A civil time is the time that a wall clock shows, as a number of seconds that would be the
// Unix time if the clock's zone were UTC. A span is a time without a change of the
// clock: in it civil and Unix time are apart by a constant offset.

// span is the rest of a span: the seconds of Unix time before to.
type span struct{ to, offset int64 }

// forever is later than all times, and far from the end of an int64, so that a sum
// with an offset does not overflow.
const forever = math.MaxInt64 / 4

// spanAt is the span of the zone that holds the second u. It may end where the clock
// does not change.
func spanAt(zone *time.Location, u int64) span {
	t := time.Unix(u, 0).In(zone)
	_, offset := t.Zone()
	_, end := t.ZoneBounds()
	switch to := end.Unix(); {
	case end.IsZero():
		return span{forever, int64(offset)}
	case to <= u:
		// Seen with Go 1.26 on the last day of a leap year after 2037. The rest of
		// the minute is safe, because clocks change at whole minutes.
		return span{u - u%60 + 60, int64(offset)}
	default:
		return span{to, int64(offset)}
	}
}

// fields is the parsed expression: which civil times match.
type fields struct{ *cron.SpecSchedule }

// anyField is the bit that the parser sets for a field of *.
const anyField = 1 << 63

// eachHour reports whether the hour is *.
func (f fields) eachHour() bool { return f.Hour&anyField != 0 }

const secondsOfDay = 24 * 60 * 60

// next returns the first civil time from the given one on that matches. It looks no
// further than to: if none before it matches, the result is to or later.
func (f fields) next(from, to int64) (civil int64) {
	for from < to {
		day := time.Unix(from, 0).UTC()
		midnight := from - int64(day.Hour()*3600+day.Minute()*60+day.Second())
		if f.Month>>day.Month()&1 == 0 {
			from = midnight + int64(daysOf(day)-day.Day()+1)*secondsOfDay
			continue
		}
		if f.onDay(day) {
			if second, ok := f.ofDay(int(from - midnight)); ok {
				return midnight + int64(second)
			}
		}
		from = midnight + secondsOfDay
	}
	return from
}

// ofDay returns the first second of a day, not before the given one, that
// matches in hour, minute and second. There is no hour 24, so a search ends there.
func (f fields) ofDay(from int) (second int, ok bool) {
	for {
		hour, ok := firstBit(f.Hour, from/3600)
		if !ok {
			return 0, false
		}
		from = max(from, hour*3600)
		minute, ok := firstBit(f.Minute, from/60%60)
		if !ok {
			from = (hour + 1) * 3600
			continue
		}
		from = max(from, hour*3600+minute*60)
		second, ok := firstBit(f.Second, from%60)
		if !ok {
			from = hour*3600 + (minute+1)*60
			continue
		}
		return hour*3600 + minute*60 + second, true
	}
}

// firstBit returns the first bit that is set, from the given one on.
func firstBit(set uint64, from int) (bit int, ok bool) {
	rest := set &^ anyField >> from
	return from + bits.TrailingZeros64(rest), rest != 0
}

// onDay reports whether the day of the month and the day of the week match.
func (f fields) onDay(day time.Time) bool {
	return (f.Dom>>day.Day()&1 != 0 || f.onSpecialDay(day)) && (f.Dow>>day.Weekday()&1 != 0 || f.onSpecialWeekday(day))
}

// onSpecialDay reports whether a day of the month matches an L or a W.
func (f fields) onSpecialDay(day time.Time) bool {
	last := daysOf(day)
	for _, c := range f.DomConstraints {
		want := 0
		switch c.Type {
		case cron.DomLast:
			want = last
		case cron.DomLastOffset:
			want = last - c.N
		case cron.DomLastWeekday:
			want = workday(day, last)
		case cron.DomNearestWeekday:
			if c.N <= last {
				want = workday(day, c.N)
			}
		}
		if day.Day() == want {
			return true
		}
	}
	return false
}

// workday returns the day from Monday to Friday that is nearest to a day of the month
// of t, in the same month.
func workday(t time.Time, day int) int {
	switch time.Date(t.Year(), t.Month(), day, 0, 0, 0, 0, time.UTC).Weekday() {
	case time.Saturday:
		if day == 1 {
			return day + 2
		}
		return day - 1
	case time.Sunday:
		if day == daysOf(t) {
			return day - 2
		}
		return day + 1
	}
	return day
}

// onSpecialWeekday reports whether a day matches a # or an L of the day of the week.
func (f fields) onSpecialWeekday(day time.Time) bool {
	for _, c := range f.DowConstraints {
		switch {
		case c.Weekday != int(day.Weekday()):
		case c.N == -1 && day.Day()+7 > daysOf(day), c.N == (day.Day()-1)/7+1:
			return true
		}
	}
	return false
}

// daysOf is how many days the month of t has.
func daysOf(t time.Time) int {
	return t.AddDate(0, 1, -t.Day()).Day() // of the next month, the day before the first
}

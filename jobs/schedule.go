package jobs

import (
	"fmt"
	"hash/fnv"
	"math"
	"time"
)

// Schedule says when a job runs. Make one with Every, Rate or Cron; the zero
// Schedule has no occurrences, so that the job runs only when it is triggered.
// A Schedule is a value and safe for concurrent use.
type Schedule struct {
	kind   scheduleKind
	period time.Duration
	cron   cronTable
	jitter time.Duration
	err    error // the mistake in its arguments
}

type scheduleKind uint8

const (
	manual scheduleKind = iota
	fixedDelay
	fixedRate
	byCron
)

// Every runs d after the end of the last run (fixed delay). d is at least a
// millisecond.
func Every(d time.Duration) Schedule { return periodic(fixedDelay, d) }

// Rate runs at whole multiples of d after the start of the job, however long
// the runs take (fixed rate). d is at least a millisecond.
func Rate(d time.Duration) Schedule { return periodic(fixedRate, d) }

// minPeriod is the shortest period. A shorter one is most likely a bare number
// that was meant as milliseconds or seconds.
const minPeriod = time.Millisecond

func periodic(kind scheduleKind, d time.Duration) Schedule {
	s := Schedule{kind: kind, period: d}
	if d < minPeriod {
		s.err = fmt.Errorf("%w: schedule: period %s is below %s; write it with its unit, as in 5*time.Second", ErrInvalid, d, minPeriod)
	}
	return s
}

// WithJitter returns s with up to limit added to each occurrence. The addition
// is a fixed function of the job's id and the occurrence: it never makes a run
// early, and the same occurrence never happens twice.
func (s Schedule) WithJitter(limit time.Duration) Schedule {
	s.jitter = limit
	if limit < 0 && s.err == nil {
		s.err = fmt.Errorf("%w: schedule: jitter %s is negative", ErrInvalid, limit)
	}
	return s
}

// Validate reports the mistake in s, as an ErrInvalid.
func (s Schedule) Validate() error { return s.err }

// Cursor is how far a job has come in its schedule. Job types store it.
type Cursor struct {
	// Anchor is the base of a fixed rate: the start of the job, or its last
	// trigger.
	Anchor time.Time `json:"anchor,omitzero"`
	// Last is the time after which the next occurrence is sought: the end of
	// the last run for a fixed delay, else the last occurrence that was taken.
	Last time.Time `json:"last,omitzero"`
}

// StartCursor is the cursor of a job that starts, or is triggered, at now.
func StartCursor(now time.Time) Cursor { return Cursor{Anchor: now, Last: now} }

// Next returns the first occurrence after c.Last, without jitter. It is zero if
// there is none.
func (s Schedule) Next(c Cursor) time.Time {
	switch {
	case s.err != nil:
		return time.Time{}
	case s.kind == fixedDelay:
		return c.Last.Add(s.period)
	case s.kind == fixedRate:
		return nextMultiple(c.Anchor, c.Last, s.period)
	case s.kind == byCron:
		return s.cron.next(c.Last)
	}
	return time.Time{}
}

// far is half of the longest Duration.
const far = time.Duration(math.MaxInt64 / 2)

// nextMultiple returns the first anchor + k·d, k from 1, after last.
func nextMultiple(anchor, last time.Time, d time.Duration) time.Time {
	for step := max(far-far%d, d); last.Sub(anchor) >= step; {
		anchor = anchor.Add(step) // because a Duration holds 292 years at most
	}
	passed := max(last.Sub(anchor), 0)
	return anchor.Add(passed - passed%d).Add(d)
}

// Due returns when the job with this id is to run next: the next occurrence and
// its jitter. It is zero if there is none.
func (s Schedule) Due(c Cursor, id string) time.Time {
	at := s.Next(c)
	if at.IsZero() || s.jitter == 0 {
		return at
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s@%d", id, at.UnixNano())
	return at.Add(time.Duration(h.Sum64() % uint64(s.jitter+1)))
}

// Missed is the policy for occurrences that passed while the job could not
// run, because its process was down or its last run took long. A fixed delay
// has no such occurrences: it is due once, however late.
type Missed uint8

const (
	RunOnce Missed = iota // one run, at once, for all of them
	RunEach               // one run for each, one after the other
	Skip                  // none; the job waits for the next occurrence
)

// Valid reports whether m is one of the policies.
func (m Missed) Valid() bool { return m <= Skip }

// skipGrace is how late an occurrence may be before Skip drops it: a minute, or
// half the way to the next occurrence if that is less.
const skipGrace = time.Minute

// Take consumes the occurrence that Due has reported as due at now. It returns
// the moved cursor and, if run, that the job is to run for the scheduled time.
// One call consumes all that RunOnce and Skip drop.
func (s Schedule) Take(c Cursor, id string, now time.Time, m Missed) (moved Cursor, scheduled time.Time, run bool) {
	scheduled, run = s.Next(c), true
	switch {
	case s.kind == fixedDelay || m == RunOnce:
		moved = Cursor{c.Anchor, latest(scheduled, now)}
	case m == RunEach:
		moved = Cursor{c.Anchor, scheduled}
	default:
		run = now.Sub(s.Due(c, id)) <= s.grace(c, scheduled)
		moved = Cursor{c.Anchor, latest(scheduled, now)}
	}
	return moved, scheduled, run
}

// grace is how late an occurrence may be before Skip drops it.
func (s Schedule) grace(c Cursor, scheduled time.Time) time.Duration {
	after := s.Next(Cursor{c.Anchor, scheduled})
	return min(skipGrace, after.Sub(scheduled)/2)
}

// Ended returns the cursor after a run that ended at now.
func (s Schedule) Ended(c Cursor, now time.Time) Cursor {
	if s.kind == fixedDelay {
		c.Last = now
	}
	return c
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// String describes s, such as "every 5m0s" or "cron 0 0 9 * * * Europe/Paris".
func (s Schedule) String() string {
	switch s.kind {
	case fixedDelay:
		return "every " + s.period.String()
	case fixedRate:
		return "rate " + s.period.String()
	case byCron:
		return "cron " + s.cron.spec
	}
	return "manual"
}

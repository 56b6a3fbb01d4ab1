package jobs

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Permanent makes the error of a run final: the run is given up without a further
// try, for ReasonPermanent. It is object.Permanent, and returns nil for nil.
func Permanent(err error) error { return object.Permanent(err) }

// RetryAfter makes the next try of a failed run happen after d instead of at the
// time of its Backoff. The failure counts all the same: MaxAttempts and MaxElapsed
// of its Retry hold. A negative d means at once. It is object.RetryAfter, and
// returns nil for a nil error.
func RetryAfter(d time.Duration, err error) error { return object.RetryAfter(d, err) }

// Snooze is the error of a run that has nothing to do yet: it is run again after d,
// as the same run, with the same attempt and the same key. It has not failed: no
// attempt is counted, its crashes so far are forgotten, and the time of the wait is
// none of Retry.MaxElapsed. What the execution made of its state is dropped. The
// wait is stored, so it survives a restart. A negative d means at once, and there
// is no limit to how often a run is snoozed.
func Snooze(d time.Duration) error { return &snooze{max(d, 0)} }

// snooze is the error that Snooze makes.
type snooze struct{ wait time.Duration }

func (s *snooze) Error() string { return fmt.Sprintf("jobs: snoozed for %s", s.wait) }

// SnoozeDelay returns the wait of an error that Snooze made, or that wraps one; ok
// is false if there is none.
func SnoozeDelay(err error) (d time.Duration, ok bool) {
	var s *snooze
	if !errors.As(err, &s) {
		return 0, false
	}
	return s.wait, true
}

// snoozeOf returns the wait that an execution has asked for with its error. One
// that panicked, or used up its time, has failed whatever its error wraps.
func snoozeOf(err error) (d time.Duration, ok bool) {
	var p *PanicError
	if errors.As(err, &p) || errors.Is(err, ErrTimeout) {
		return 0, false
	}
	return SnoozeDelay(err)
}

// snoozed returns r after its execution asked to be run again after d.
func (r Run) snoozed(now time.Time, d time.Duration) Run {
	r.Attempt--
	r.Recoveries = 0
	r.Recovering = false
	r.RetryAt = storable(now.Add(d))
	if r.Failures == 0 {
		r.FirstAt = time.Time{}
	} else {
		r.FirstAt = r.FirstAt.Add(d)
	}
	return r
}

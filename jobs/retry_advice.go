package jobs

import (
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
// none of Retry.MaxElapsed. The changes of the execution to its state are dropped. The
// wait is stored, so it survives a restart. A negative d means at once, and there
// is no limit to how often a run is snoozed.
func Snooze(d time.Duration) error { return &snooze{max(d, 0)} }

// snooze is the error that Snooze makes.
type snooze struct{ wait time.Duration }

// SnoozeDelay is how package engine reads the wait.
func (s *snooze) SnoozeDelay() time.Duration { return s.wait }

func (s *snooze) Error() string { return fmt.Sprintf("jobs: snoozed for %s", s.wait) }

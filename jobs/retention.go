package jobs

import (
	"cmp"
	"fmt"
	"time"
)

// Retention says how long a job is kept after its end, by the status that it ended in (J20).
// Then its alarm removes it as Terminate does, with the reason RetentionReason. Zero means that
// the job is kept until Terminate. A time counts from the end of the job, and is stored with
// it: another Retention counts for jobs that end later.
type Retention struct {
	Completed time.Duration
	Cancelled time.Duration
	Failed    time.Duration
}

// For is how long a job is kept that ended in the status s; zero: until Terminate.
func (r Retention) For(s Status) time.Duration {
	switch s {
	case Completed:
		return r.Completed
	case Cancelled:
		return r.Cancelled
	case Failed:
		return r.Failed
	}
	return 0
}

// Validate reports the first time of r that is negative, as an ErrInvalid.
func (r Retention) Validate() error {
	return cmp.Or(notNegative("Completed", r.Completed), notNegative("Cancelled", r.Cancelled), notNegative("Failed", r.Failed))
}

// notNegative is an ErrInvalid that names a time of a Retention which is less than zero.
func notNegative(name string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%w: Retention.%s must not be negative: %v", ErrInvalid, name, d)
	}
	return nil
}

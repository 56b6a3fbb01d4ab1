package jobs

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Forever as a time of a Retention keeps the job until a verb ends it, where zero is a default
// that ends it sooner.
const Forever = time.Duration(math.MaxInt64)

// Retention says how long a job is kept after its end, by the status that it ended in (J21).
// Then its alarm removes it as Terminate does, with the reason RetentionReason. Zero means
// the default of the job's type; most types keep a job until a verb ends it, as Forever does. The
// times count from Meta.EndedAt. A changed Retention counts for a job from the next time that
// it is in memory; Rearm brings all jobs there.
type Retention struct {
	Completed time.Duration
	Cancelled time.Duration
	Failed    time.Duration
	Stopped   time.Duration

	// StaleAfter is how long after its end a failed or stopped job becomes stale: Meta.Stale is
	// set and EventStale told (J22). It must not be longer than Failed and Stopped. Zero: never.
	StaleAfter time.Duration
	// OnStale is called for each job that becomes stale, beside the turns, after the batch that
	// tells of it is durable. It requires StaleAfter. Nil: nothing is called.
	OnStale func(ctx context.Context, r *Retired) error
	// OnDelete is called before this Retention removes a job, beside the turns. Terminate does
	// not call it. If the job is resumed during the call it stays. Nil: nothing is called.
	//
	// Both are called at least once, with the same Retired.Key, and again after a crash or an
	// error, 1 s to 4 s later. After five errors the job goes on without the call, which
	// EventRetentionFailed tells (J23).
	OnDelete func(ctx context.Context, r *Retired) error
}

// Retired is a job that has ended, as the hooks of its Retention are told of it. It is an
// object.Caller, so that the hook calls other objects with it.
type Retired struct {
	// Caller is the job's object, as which the hook calls other objects.
	object.Caller `json:"-"`

	ID string // of the job
	// Key names this call among all of the store; it is the same in each repeat of the call,
	// for use as an idempotency key.
	Key     string
	Status  Status    // that the job ended in
	EndedAt time.Time // when it ended
	Reason  string    // why it ended, see Meta.StopReason
	Error   string    // of its last run, see Meta.LastError
}

// For is how long a job is kept that ended in the status s; zero: until a verb ends it.
func (r Retention) For(s Status) time.Duration {
	var d time.Duration
	switch s {
	case Completed:
		d = r.Completed
	case Cancelled:
		d = r.Cancelled
	case Failed:
		d = r.Failed
	case Stopped:
		d = r.Stopped
	}
	if d == Forever {
		return 0
	}
	return d
}

// Validate reports the first mistake in r, as an ErrInvalid.
func (r Retention) Validate() error {
	err := cmp.Or(notNegative("Completed", r.Completed), notNegative("Cancelled", r.Cancelled), notNegative("Failed", r.Failed),
		notNegative("Stopped", r.Stopped), notNegative("StaleAfter", r.StaleAfter))
	switch {
	case err != nil:
		return err
	case r.OnStale != nil && r.StaleAfter == 0:
		return fmt.Errorf("%w: Retention.OnStale needs StaleAfter", ErrInvalid)
	}
	return cmp.Or(r.staleBefore("Failed", r.Failed), r.staleBefore("Stopped", r.Stopped))
}

// staleBefore is an ErrInvalid that names a time of r at which the job is gone before it is stale.
func (r Retention) staleBefore(name string, gone time.Duration) error {
	if gone > 0 && gone < r.StaleAfter {
		return fmt.Errorf("%w: Retention.%s %v is shorter than StaleAfter %v", ErrInvalid, name, gone, r.StaleAfter)
	}
	return nil
}

// notNegative is an ErrInvalid that names a time of a Retention which is less than zero.
func notNegative(name string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%w: Retention.%s must not be negative: %v", ErrInvalid, name, d)
	}
	return nil
}

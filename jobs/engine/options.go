package engine

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
)

// Options are the settings of an execution engine. The zero value is fit for
// production.
type Options struct {
	// Retry says how failures are tried again. Zero means not at all.
	Retry jobs.Retry
	// Timeout ends the context of an execution, with the cause ErrTimeout. Work
	// that goes on for a further Lease is fenced off, and has failed. Zero
	// means no limit.
	Timeout time.Duration
	// Lease is how long an execution may be without a sign of life. Zero means
	// 30 seconds.
	Lease time.Duration
	// Heartbeat is how often a lease is extended; it must be less than Lease.
	// Zero means a third of it.
	Heartbeat time.Duration
	// Limits say when a lost execution is recovered, and how often.
	recovery.Limits
	// LossIsFailure makes an execution a failed attempt, retried as such, if its outside
	// holder let the lease end (W5). A crash or a shutdown never is one.
	LossIsFailure bool
	// MergeEnds is how many executions may end in one batch. If more begin between
	// two such batches than end in one, work that could run waits. Zero means 512.
	MergeEnds int
	// Quiet leaves out the events of starts, successes and snoozes.
	Quiet bool
	// TellSuccess adds the events of successes although Quiet is set.
	TellSuccess bool
	// LazyAlarm leaves the object's alarm alone when it is to come and is
	// earlier than it need be. The wake-up that is too early finds nothing due
	// and arms the rest. It spares the writes of moving the alarm
	// if the due time moves back with each call, as that of a debounce does.
	LazyAlarm bool

	endless       bool // no failure is the last; see JobOptions.Stuck
	resetsAreFree bool // see JobOptions.FreeResets
}

// WithDefaults returns o with each zero field set to its default.
func (o Options) WithDefaults() Options {
	if o.Lease == 0 {
		o.Lease = 30 * time.Second
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = o.Lease / 3
	}
	o.Limits = o.Limits.WithDefaults()
	if o.MergeEnds == 0 {
		o.MergeEnds = 512
	}
	return o
}

// Validate reports the first mistake in o, as an ErrInvalid.
func (o Options) Validate() error {
	err := cmp.Or(
		notNegative("Timeout", o.Timeout), notNegative("Lease", o.Lease), notNegative("Heartbeat", o.Heartbeat),
		notNegative("StaleThreshold", o.StaleThreshold), notNegative("RecoveryDelay", o.RecoveryDelay), notNegative("MergeEnds", o.MergeEnds),
	)
	if err != nil {
		return err
	}
	if d := o.WithDefaults(); d.Heartbeat >= d.Lease {
		return fmt.Errorf("%w: Heartbeat %s is not less than Lease %s", jobs.ErrInvalid, d.Heartbeat, d.Lease)
	}
	if err := o.Retry.Validate(); err != nil {
		return fmt.Errorf("%w: %w", jobs.ErrInvalid, err)
	}
	return nil
}

// notNegative is an ErrInvalid that names an option which is less than zero.
func notNegative[T int | time.Duration](name string, v T) error {
	if v < 0 {
		return fmt.Errorf("%w: %s must not be negative: %v", jobs.ErrInvalid, name, v)
	}
	return nil
}

// maxAlarmCrashes is the default of a job's class. It is higher than that of
// other classes because no code of the user's runs in the alarm's turn of a job:
// a crash there was most likely not the job's doing.
const maxAlarmCrashes = 10

// ClassOptions returns o as the class of a job needs it: a wake-up that fails, say
// for a definition that cannot read the rows of an earlier one, is tried again
// without end, at most about a minute apart, so that no job is forgotten. Its methods are
// internal, because a call by name would pass by the rules of its verbs.
func ClassOptions(o object.ClassOptions) object.ClassOptions {
	if o.AlarmRetry.MaxAttempts == 0 {
		o.AlarmRetry.MaxAttempts = math.MaxInt
	}
	if o.MaxAlarmCrashes == 0 {
		o.MaxAlarmCrashes = maxAlarmCrashes
	}
	o.Internal = true
	return o
}

package jobs

import (
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
)

// Retry says how often a failing run, flush or task is tried again, and when (J9). It is
// the type that alarms have too. The zero Retry tries a run or a flush once, and a task
// three times.
type Retry = alarm.Retry

// Backoff is the wait between a failure and the next attempt. Make one with Constant,
// Linear or Exponential.
type Backoff = alarm.Backoff

// Constant waits d after each failure.
func Constant(d time.Duration) Backoff { return alarm.Constant(d) }

// Linear waits step after the first failure, twice that after the second, and so on, at
// most limit.
func Linear(step, limit time.Duration) Backoff { return alarm.Linear(step, limit) }

// Exponential waits base after the first failure and doubles the wait with each further
// one, up to limit. Backoff.WithFactor gives another factor than 2, and
// Backoff.WithJitter makes the waits differ, so that runs which failed together are not
// tried again together.
func Exponential(base, limit time.Duration) Backoff { return alarm.Exponential(base, limit) }

// Reason says why a run was given up.
type Reason string

const (
	ReasonAttempts     Reason = "attempts"      // Retry.MaxAttempts
	ReasonDuration     Reason = "duration"      // Retry.MaxElapsed
	ReasonNotRetryable Reason = "not retryable" // Retry.RetryIf
	ReasonPermanent    Reason = "permanent"     // the error is Permanent
	ReasonRecoveries   Reason = "recoveries"    // Options.MaxRecoveries
)

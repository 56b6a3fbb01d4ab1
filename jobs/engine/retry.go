package engine

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// notGivenUp is the reason of a run that goes on.
const notGivenUp jobs.Reason = ""

// NextAttempt returns when a part of a run that has just failed with err is tried again, by
// the rules of the runs themselves. reason is empty then, else it is why there is no further
// attempt. failures counts the failed attempts, this one included; first is when the first one
// began.
func NextAttempt(r jobs.Retry, failures int, first, now time.Time, err error, src rand.Source) (at time.Time, reason jobs.Reason) {
	at, reason = next(r, jobs.Run{Failures: failures, FirstAt: first}, now, err, src)
	return storable(at), reason
}

// next returns when a run that has just failed is tried again, or why it is not. The order
// of its checks decides which reason is told: an error that is Permanent first, because no
// setting can overrule it.
// run.Failures counts this failure already.
func next(r jobs.Retry, run jobs.Run, now time.Time, err error, src rand.Source) (time.Time, jobs.Reason) {
	if object.IsPermanent(err) {
		return time.Time{}, jobs.ReasonPermanent
	}
	if r.RetryIf != nil && !errors.Is(err, ErrLost) && !r.RetryIf(err) {
		return time.Time{}, jobs.ReasonNotRetryable
	}
	if run.Failures >= max(r.MaxAttempts, 1) {
		return time.Time{}, jobs.ReasonAttempts
	}
	at := now.Add(waitAfter(r, run, err, src))
	if r.MaxElapsed > 0 && at.Sub(run.FirstAt) > r.MaxElapsed {
		return time.Time{}, jobs.ReasonDuration
	}
	return at, notGivenUp
}

// waitAfter is the wait after a failure: the one that its error asks for, or that of r.
func waitAfter(r jobs.Retry, run jobs.Run, err error, src rand.Source) time.Duration {
	wait, wished := object.RetryDelay(err)
	if !wished {
		wait = r.Backoff.Delay(run.Failures, src)
	}
	return wait
}

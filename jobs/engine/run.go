package engine

import (
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/recovery"
)

// begunRun returns r as of the begin of its next execution.
// RetryAt is cleared, because the execution it announced has come; FirstAt stays, because
// Retry.MaxElapsed counts from the first execution.
func begunRun(r jobs.Run, now time.Time) jobs.Run {
	r.Attempt++
	r.RetryAt = time.Time{}
	if r.FirstAt.IsZero() {
		r.FirstAt = now
	}
	return r
}

// failedRun returns r after its execution failed with err.
// A failure shows that the run does not kill its process, so the crashes in a row that
// were counted against it are forgotten.
func failedRun(r jobs.Run, err error) jobs.Run {
	r.Failures++
	r.Recovering = false
	r.Cuts, r.CutEpoch, r.OwnersLost = 0, 0, 0
	r.LastError = Shorten(err.Error())
	return r
}

// loss is how an execution was lost.
type loss struct {
	cause   recovery.Cause
	free    bool   // to a shutdown in order, or before its work began: it counts as none
	spent   bool   // it is not repeated (R4)
	charges int    // crashes that are charged to it
	epoch   uint64 // of the opening that began it
	cleared uint64 // see object.Suspicion
}

// lostRun returns r after its execution was lost, to be repeated at the given time.
// A loss is no attempt: a power failure must not use up the attempts of a run. Losses in
// a living process are counted apart from crashes, because only the first have a fixed
// bound (see recovery.Check). The loss of an owner is no crash, and has a count of its own.
func lostRun(r jobs.Run, at time.Time, l loss) jobs.Run {
	switch {
	case l.free:
	case l.cause == recovery.CauseOwnerLost:
		r.OwnersLost++
	case l.cause == recovery.CauseCrash:
		r.Recoveries++
		cut(&r, l.epoch, l.cleared)
	default:
		r.Recoveries++
		r.Losses++
	}
	r.RetryAt = at
	r.Recovering = true
	return r
}

// cut counts a crash of the opening epoch.
func cut(r *jobs.Run, epoch, cleared uint64) {
	if r.CutEpoch <= cleared {
		r.Cuts = 0
	}
	if epoch > cleared {
		r.Cuts++
	}
	r.CutEpoch = epoch
}

// snoozedRun returns r after its execution asked to be run again after d.
// FirstAt moves by the wait, so that Retry.MaxElapsed does not count it.
func snoozedRun(r jobs.Run, now time.Time, d time.Duration) jobs.Run {
	r.Attempt--
	r.Recoveries, r.OwnersLost = 0, 0
	r.Recovering = false
	r.RetryAt = storable(now.Add(d))
	if r.Failures == 0 {
		r.FirstAt = time.Time{}
	} else {
		r.FirstAt = r.FirstAt.Add(d)
	}
	return r
}

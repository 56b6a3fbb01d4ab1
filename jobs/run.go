package jobs

import (
	"time"

	"github.com/holdfast-dev/holdfast/recovery"
)

// Run is the progress of one run of the work over all its executions. Job types
// store it between executions; the engine makes the next from the last.
type Run struct {
	// Number counts the runs of the job from 1. A run keeps its number until an
	// execution of it is committed.
	Number uint64 `json:"number,omitempty"`
	// Attempt counts the executions of this run that have begun, from 1.
	Attempt int `json:"attempt,omitempty"`
	// Failures counts those that failed; Retry.MaxAttempts bounds it.
	Failures int `json:"failures,omitempty"`
	// Earlier counts those that failed before the run got all its attempts again.
	Earlier int `json:"earlier,omitempty"`
	// Recoveries counts executions that were lost without a success between, most
	// of them to crashes.
	Recoveries int `json:"recoveries,omitempty"`
	// Losses counts those of them that were lost while their process lived.
	Losses int `json:"losses,omitempty"`
	// Cuts counts the crashes in a row that cut off an execution of this run, as far
	// as they may be its doing, and CutEpoch is the opening of the last one.
	Cuts     int    `json:"cuts,omitempty"`
	CutEpoch uint64 `json:"cutEpoch,omitempty"`
	// Scheduled is the time that the run was due at.
	Scheduled time.Time `json:"scheduled,omitzero"`
	// FirstAt is when the first execution began.
	FirstAt time.Time `json:"firstAt,omitzero"`
	// RetryAt is when the next execution is due; zero if none waits.
	RetryAt time.Time `json:"retryAt,omitzero"`
	// Recovering says that the next execution replaces a lost one.
	Recovering bool `json:"recovering,omitempty"`
	// Cause is the job type's own word for why the run is due.
	Cause string `json:"cause,omitempty"`
	// LastError is the text of the last failure of this run.
	LastError string `json:"lastError,omitempty"`
}

// begun returns r as of the begin of its next execution.
func (r Run) begun(now time.Time) Run {
	r.Attempt++
	r.RetryAt = time.Time{}
	if r.FirstAt.IsZero() {
		r.FirstAt = now
	}
	return r
}

// failed returns r after its execution failed with err.
func (r Run) failed(err error) Run {
	r.Failures++
	r.Recovering = false
	r.Cuts, r.CutEpoch = 0, 0
	r.LastError = Shorten(err.Error())
	return r
}

// Failed returns how many executions of the run have failed in all. A crash is no
// failure.
func (r Run) Failed() int { return r.Earlier + r.Failures }

// loss is how an execution was lost.
type loss struct {
	cause   recovery.Cause
	free    bool   // to a shutdown in order, or before its work began: it counts as none
	spent   bool   // it is not repeated (R4)
	charges int    // crashes that are charged to it
	epoch   uint64 // of the opening that began it
	cleared uint64 // see object.Suspicion
}

// lost returns r after its execution was lost, to be repeated at the given time.
func (r Run) lost(at time.Time, l loss) Run {
	switch {
	case l.free:
	case l.cause == recovery.CauseCrash:
		r.Recoveries++
		r.cut(l.epoch, l.cleared)
	default:
		r.Recoveries++
		r.Losses++
	}
	r.RetryAt = at
	r.Recovering = true
	return r
}

// cut counts a crash of the opening epoch.
func (r *Run) cut(epoch, cleared uint64) {
	if r.CutEpoch <= cleared {
		r.Cuts = 0
	}
	if epoch > cleared {
		r.Cuts++
	}
	r.CutEpoch = epoch
}

package jobs

import "time"

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
	// Recoveries counts executions lost to crashes without a success between.
	Recoveries int `json:"recoveries,omitempty"`
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
	r.LastError = Shorten(err.Error())
	return r
}

// lost returns r after its execution was lost, to be repeated at the given time.
// A loss that was not a crash costs no recovery (O14).
func (r Run) lost(at time.Time, crash bool) Run {
	if crash {
		r.Recoveries++
	}
	r.RetryAt = at
	r.Recovering = true
	return r
}

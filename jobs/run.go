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
	// OwnersLost counts the take-overs in a row by another node, over a replicated log, that cut off an execution of this run. They
	// are no crashes, because a node is also replaced when it cannot be reached.
	OwnersLost int `json:"ownersLost,omitempty"`
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

// Failed returns how many executions of the run have failed in all. A crash is no
// failure.
func (r Run) Failed() int { return r.Earlier + r.Failures }

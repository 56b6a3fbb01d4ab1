package jobs

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-dev/holdfast/recovery"
)

// Result is what a work that succeeded hands to its end batch.
type Result struct {
	// Store runs first in the end batch and writes what the work made, which it
	// has encoded before. If the write is refused for its size, the run has
	// failed with that error. Nil: nothing to write.
	Store func(ctx context.Context) error
	// Size is about how many bytes Store writes, so that not too many results
	// are stored in one batch.
	Size int
	// End says whether the job ends with this run.
	End End
	// Reason is stored and told with End.
	Reason string
	// NextAt, if not zero, is when the next run is due, once, in place of the
	// schedule.
	NextAt time.Time
}

// End is how a job wishes to go on after a run.
type End uint8

const (
	Continue  End = iota // by its schedule
	Stop                 // no further run, state kept
	Terminate            // the job is gone
)

// Kind is the sort of end that an execution came to.
type Kind string

const (
	Done      Kind = "done"      // succeeded; the job goes on
	Quit      Kind = "quit"      // succeeded, and the job ends as Result.End says
	Again     Kind = "again"     // failed; tried again at Run.RetryAt
	GaveUp    Kind = "gave up"   // failed for the last time, see Reason
	Recover   Kind = "recover"   // lost; repeated at Run.RetryAt
	Snoozed   Kind = "snoozed"   // asked by Snooze to be run again at Run.RetryAt
	Cancelled Kind = "cancelled" // ended with an error after Engine.Cancel
)

// Waits reports whether the run goes on with a further execution at Run.RetryAt.
func (o Outcome) Waits() bool { return o.Kind == Again || o.Kind == Recover || o.Kind == Snoozed }

// Outcome is what follows from the end of an execution. It is decided in one
// place, for all job types.
type Outcome struct {
	Kind   Kind
	Run    Run    // the run's progress, to be stored for Again, Recover and Snoozed
	Err    error  // of all but Done and Quit
	Reason Reason // of GaveUp
	Result Result // of Done and Quit; Store has run
	Lost   bool   // the execution was lost, whatever followed
}

// ending is how an execution ended, before anything is decided.
type ending struct {
	result    Result
	err       error
	cancelled bool  // Engine.Cancel asked for it
	lost      *loss // how it was lost; err is ErrLost then
}

// decide turns the end of an execution into what follows.
func (o *Options) decide(run Run, e ending, now time.Time, src rand.Source) Outcome {
	switch {
	case e.lost != nil && !(o.LossIsFailure && e.lost.cause == recovery.CauseLease):
		return decideLoss(run, e, now)
	case e.err == nil && e.result.End != Continue:
		return Outcome{Kind: Quit, Run: run, Result: e.result}
	case e.err == nil:
		return Outcome{Kind: Done, Run: run, Result: e.result}
	case e.cancelled:
		return Outcome{Kind: Cancelled, Run: run.failed(e.err), Err: e.err}
	}
	if wait, ok := snoozeOf(e.err); ok {
		return Outcome{Kind: Snoozed, Run: run.snoozed(now, wait)}
	}
	run = run.failed(e.err)
	at, reason := o.Retry.next(run, now, e.err, src)
	if reason != NotGivenUp {
		return Outcome{Kind: GaveUp, Run: run, Err: e.err, Reason: reason, Lost: e.lost != nil}
	}
	run.RetryAt = at
	return Outcome{Kind: Again, Run: run, Err: e.err, Lost: e.lost != nil}
}

// decideLoss repeats a lost run, unless its recoveries are used up (R4).
func decideLoss(run Run, e ending, now time.Time) Outcome {
	if e.lost.spent {
		run.LastError = Shorten(e.err.Error())
		return Outcome{Kind: GaveUp, Run: run, Err: e.err, Reason: ReasonRecoveries, Lost: true}
	}
	return Outcome{Kind: Recover, Run: run.lost(now, *e.lost), Err: e.err, Lost: true}
}

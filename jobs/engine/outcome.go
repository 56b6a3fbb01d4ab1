package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/recovery"
)

// Result is the part of successful work that its end batch stores.
type Result struct {
	// Store runs first in the end batch and writes the result, which the work has
	// encoded before. If a write is refused for its size, and Store returns that error, the
	// run has failed with it and all writes of Store are undone; Store must leave its memory
	// as it was. Nil: nothing to write.
	Store func(ctx context.Context) error
	// Size is about how many bytes Store writes, so that not too many results
	// are stored in one batch. Beside an error it is how many the error adds to
	// Spec.Size.
	Size int
	// Wish says whether the job ends with this run.
	Wish Wish
	// Reason is stored and told with Wish.
	Reason string
	// Err is the cause of an end by the Wish Fail or Cancel. It is stored as Meta.LastError.
	Err error
	// NextAt, if not zero, is when the next run is due, once, in place of the
	// schedule.
	NextAt time.Time
}

// Wish is how the work of a run asks its job to go on.
type Wish uint8

const (
	Continue  Wish = iota // by its schedule
	Stop                  // no further run, state kept
	Terminate             // the job is gone
	Complete              // the job is completed, state kept
	Fail                  // the job has failed, with Result.Err, state kept
	Cancel                // the job is cancelled, with Result.Err, state kept
)

// status is the status of a job that ends as w says.
func (w Wish) status() jobs.Status {
	switch w {
	case Terminate:
		return jobs.Terminated
	case Complete:
		return jobs.Completed
	case Fail:
		return jobs.Failed
	case Cancel:
		return jobs.Cancelled
	}
	return jobs.Stopped
}

// Kind is the sort of end that an execution came to.
type Kind string

const (
	Done      Kind = "done"      // succeeded; the job goes on
	Quit      Kind = "quit"      // succeeded, and the job ends as Result.Wish says
	Again     Kind = "again"     // failed; tried again at Run.RetryAt
	GaveUp    Kind = "gave up"   // failed for the last time, see Reason
	Recover   Kind = "recover"   // lost; repeated at Run.RetryAt
	Snoozed   Kind = "snoozed"   // asked by Snooze to be run again at Run.RetryAt
	Cancelled Kind = "cancelled" // ended with an error after Engine.Cancel
)

// Waits reports whether the run goes on with a further execution at Run.RetryAt.
func (o Outcome) Waits() bool { return o.Kind == Again || o.Kind == Recover || o.Kind == Snoozed }

// Outcome is the decision about an execution that has ended. It is made in one place for
// all job types, so that they cannot differ in it.
type Outcome struct {
	Kind   Kind
	Run    jobs.Run    // the run's progress, to be stored for Again, Recover and Snoozed
	Err    error       // of all but Done and Quit
	Reason jobs.Reason // of GaveUp
	Result Result      // of Done and Quit; Store has run
	Lost   bool        // the execution was lost: by a crash, or because its lease ended

	cause recovery.Cause // of Recover
}

// end is how an execution ended, before anything is decided; Outcome is the decision.
type end struct {
	token     Token // of work that has returned
	result    Result
	err       error
	cancelled bool  // by Engine.Cancel
	size      int   // about how many bytes its end writes
	lost      *loss // how it was lost; err is ErrLost then
	suspended bool  // it was cut off because the log did not answer; err is that of the work
}

// decide makes the decision about an execution that has ended. The order of its cases
// matters: a loss is no failure, and work that returned nil has succeeded even if it
// was cancelled meanwhile.
func (o *Options) decide(run jobs.Run, e end, now time.Time, src rand.Source) Outcome {
	switch {
	case e.lost != nil && !(o.LossIsFailure && e.lost.cause == recovery.CauseLease):
		return decideLoss(run, e, now)
	case e.err == nil && e.result.Wish != Continue:
		return Outcome{Kind: Quit, Run: run, Result: e.result}
	case e.err == nil:
		return Outcome{Kind: Done, Run: run, Result: e.result}
	case e.cancelled:
		return Outcome{Kind: Cancelled, Run: failedRun(run, e.err), Err: e.err}
	}
	if wait, ok := snoozeOf(e.err); ok {
		return Outcome{Kind: Snoozed, Run: snoozedRun(run, now, wait)}
	}
	run = failedRun(run, e.err)
	if o.endless {
		run.RetryAt = now.Add(waitAfter(o.Retry, run, e.err, src))
		return Outcome{Kind: Again, Run: run, Err: e.err, Lost: e.lost != nil}
	}
	at, reason := next(o.Retry, run, now, e.err, src)
	if reason != notGivenUp {
		return Outcome{Kind: GaveUp, Run: run, Err: e.err, Reason: reason, Lost: e.lost != nil}
	}
	run.RetryAt = at
	return Outcome{Kind: Again, Run: run, Err: e.err, Lost: e.lost != nil}
}

// decideLoss repeats a lost run, unless its recoveries are used up (R4).
func decideLoss(run jobs.Run, e end, now time.Time) Outcome {
	if e.lost.spent {
		run.LastError = Shorten(e.err.Error())
		return Outcome{Kind: GaveUp, Run: run, Err: e.err, Reason: jobs.ReasonRecoveries, Lost: true}
	}
	return Outcome{Kind: Recover, Run: lostRun(run, now, *e.lost), Err: e.err, Lost: true, cause: e.lost.cause}
}

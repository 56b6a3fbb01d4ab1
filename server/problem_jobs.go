package server

import (
	jobadmin "github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// Types of problems that code compares: of a wait for the end of work.
const (
	waitEnded     = "timeout"
	workFailed    = "work-failed"
	workCancelled = "work-cancelled"
)

// jobRules are the rules of the errors of job types, tried after rules.
var jobRules = []rule{
	{is: jobadmin.ErrNoType, problem: problem{Type: "unknown-type", Title: "There is no such job type here.", Status: 404, Outcome: none}},
	{is: verbs.ErrUnknown, problem: problem{Type: "unknown-verb", Title: "The job type has no such verb or view.", Status: 404, Outcome: none}, tell: true},
	{is: jobs.ErrNotFound, problem: problem{Type: "unknown-job", Title: "There is no such job or task.", Status: 404, Outcome: none}},
	{is: jobs.ErrInvalid, problem: problem{Type: "invalid", Title: "The job type does not take this.", Status: 400, Outcome: none}, tell: true},
	{is: jobs.ErrIllegalMove, problem: problem{Type: "illegal-move", Title: "The status of the job does not allow it.", Status: 409, Outcome: none}, tell: true},
	{is: jobs.ErrStaleExecution, problem: problem{Type: "stale-lease", Title: "The lease has ended, or the task has.", Status: 409, Outcome: none}},
	{is: workerpool.ErrQueueFull, problem: problem{Type: "queue-full", Title: "Too many tasks wait.", Status: 429, Outcome: none, Retryable: true, retryAfter: 1}},
	{is: workerpool.ErrDraining, problem: problem{Type: "draining", Title: "The pool takes no tasks now.", Status: 503, Outcome: none, Retryable: true, retryAfter: 1}},
	{is: workerpool.ErrFailed, problem: problem{Type: workFailed, Title: "The task is dead.", Status: 409, Outcome: none}, tell: true},
	{is: workerpool.ErrCancelled, problem: problem{Type: workCancelled, Title: "The task was cancelled.", Status: 409, Outcome: none}, tell: true},
	{is: workflow.ErrFailed, problem: problem{Type: workFailed, Title: "The run has failed.", Status: 409, Outcome: none}, tell: true},
	{is: workflow.ErrCancelled, problem: problem{Type: workCancelled, Title: "The run was cancelled.", Status: 409, Outcome: none}, tell: true},
	{is: workflow.ErrUndone, problem: problem{Type: "illegal-move", Title: "The run cannot go on.", Status: 409, Outcome: none}, tell: true},
	{is: workflow.ErrEnded, problem: problem{Type: "illegal-move", Title: "The run has ended.", Status: 409, Outcome: none}},
	{is: workflow.ErrUnknownSignal, problem: problem{Type: "invalid", Title: "The workflow has no such signal.", Status: 400, Outcome: none}, tell: true},
	{is: workflow.ErrBusy, problem: problem{Type: "overloaded", Title: "Too many signals wait.", Status: 429, Outcome: none, Retryable: true, retryAfter: 1}},
	{is: debounce.ErrFull, problem: problem{Type: "overloaded", Title: "Too many events wait.", Status: 429, Outcome: none, Retryable: true, retryAfter: 1}},
	{is: object.ErrNoDeadLetter, problem: problem{Type: "unknown-letter", Title: "There is no such dead letter.", Status: 404, Outcome: none}},
	{is: object.ErrUseVerb, problem: problem{Type: "use-verb", Title: "The dead letter is of a job or a timer that the server cannot replay or discard.", Status: 409, Outcome: none}, tell: true},
	{is: jobadmin.ErrArmed, problem: problem{Type: "armed", Title: "The object has set another alarm meanwhile.", Status: 409, Outcome: none, Detail: "replay with replace to put the dead one in its place"}},
	{is: jobadmin.ErrNoToken, problem: problem{Type: "unknown-token", Title: "There is no such token, or not any more.", Status: 404, Outcome: none, Detail: "count again"}},
}

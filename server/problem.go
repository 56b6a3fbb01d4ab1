package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	jobadmin "github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
)

// problem is an error of the API as RFC 9457 has it.
type problem struct {
	Type      string  `json:"type"`  // for programs, for example "unknown-method"; it never changes
	Title     string  `json:"title"` // for people: the same for each problem of the type
	Status    int     `json:"status"`
	Detail    string  `json:"detail,omitempty"` // what happened here, and what to do
	Outcome   outcome `json:"outcome"`
	Retryable bool    `json:"retryable"`

	retryAfter int // seconds; zero: no header
}

// outcome is what a request that failed has left behind.
type outcome string

const (
	none    outcome = "none"    // nothing
	unknown outcome = "unknown" // perhaps what it asked for
)

// Error returns the title and the detail.
func (p *problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Title + ": " + p.Detail
}

// badRequest is the problem of a request that is wrong in itself.
func badRequest(detail string) *problem {
	return &problem{Type: "bad-request", Title: "The request is wrong.", Status: http.StatusBadRequest, Detail: detail, Outcome: none}
}

// notFound is the problem of an object, or a job, that is not there for the principal. It tells
// nothing else, because the principal may not know whether it exists.
func notFound() *problem {
	return &problem{Type: "not-found", Title: "There is no such thing here.", Status: http.StatusNotFound, Outcome: none}
}

// A rule makes a problem of the errors that match is. tell says that the text of the error is
// the detail.
type rule struct {
	is      error
	problem problem
	tell    bool
}

// rules are tried in their order, because an error may match more than one.
var rules = []rule{
	{is: auth.ErrNoCredentials, problem: problem{Type: "no-credentials", Title: "The request has no credentials.", Status: 401, Outcome: none}},
	{is: auth.ErrBadCredentials, problem: problem{Type: "bad-credentials", Title: "The credentials are wrong, revoked or too old.", Status: 401, Outcome: none}},

	{is: object.ErrUnknown, problem: problem{Type: "outcome-unknown", Title: "The wait for the answer has ended, and the handler goes on.", Status: 504, Outcome: unknown,
		Detail: "repeat the request with the same Idempotency-Key"}},
	{is: object.ErrStorage, problem: problem{Type: "storage-failed", Title: "The store has failed.", Status: 503, Outcome: unknown}},
	{is: object.ErrNoSpace, problem: problem{Type: "no-space", Title: "The disk is nearly full.", Status: 507, Outcome: none, Retryable: true}},
	{is: object.ErrShutdown, problem: problem{Type: "shutting-down", Title: "The host is shutting down.", Status: 503, Outcome: none, Retryable: true, retryAfter: 1}},
	{is: object.ErrOverloaded, problem: problem{Type: "overloaded", Title: "Too many calls wait for the object.", Status: 429, Outcome: none, Retryable: true, retryAfter: 1}},
	{is: object.ErrOutboxFull, problem: problem{Type: "overloaded", Title: "Too many messages wait.", Status: 429, Outcome: none, Retryable: true, retryAfter: 1}},
	{is: object.ErrDeadlock, problem: problem{Type: "deadlock", Title: "The call would wait for itself.", Status: 409, Outcome: none}, tell: true},
	{is: object.ErrBadName, problem: problem{Type: "bad-name", Title: "Nothing can have this name.", Status: 400, Outcome: none}, tell: true},
	{is: object.ErrBadCursor, problem: problem{Type: "bad-cursor", Title: "The cursor is not that of a page.", Status: 400, Outcome: none}},
	{is: object.ErrBadArgument, problem: problem{Type: "bad-argument", Title: "The argument cannot be decoded.", Status: 400, Outcome: none}, tell: true},
	{is: object.ErrConstructor, problem: problem{Type: "constructor-failed", Title: "The object cannot start.", Status: 500, Outcome: none, Retryable: true}},

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

	{is: object.ErrPanic, problem: problem{Type: "panic", Title: "The handler has panicked.", Status: 500, Outcome: unknown}},
}

// problemOf returns the problem of an error. An error that no rule knows is the server's own.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	for i := range rules {
		if r := &rules[i]; errors.Is(err, r.is) {
			p := r.problem
			if r.tell {
				p.Detail = err.Error()
			}
			return &p
		}
	}
	return &problem{Type: internal, Title: "The server has failed.", Status: http.StatusInternalServerError, Outcome: unknown}
}

// fail answers with the problem of an error. If an answer has begun, it cuts the connection, so
// that the client does not take the part for the whole.
func (x *exchange) fail(err error) {
	p := *problemOf(err)
	w := x.w.(*response)
	if p.Status >= 500 && p.Status != http.StatusGatewayTimeout {
		var logged *panicked
		if !errors.As(err, &logged) {
			x.logError(err)
		}
	}
	if x.route != nil && w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	if x.r.Method == http.MethodGet || x.r.Method == http.MethodHead {
		p.Outcome = none // it changes nothing
	}
	p.write(w.ResponseWriter)
}

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter) {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // it has texts and numbers only
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(b)+1))
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(b, '\n'))
}

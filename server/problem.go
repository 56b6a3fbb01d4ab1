package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

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

	retryAfter int  // seconds; zero: no header
	refuses    bool // the principal lacks a right, though the type does not tell so
}

// outcome tells whether a request that failed has left anything behind.
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

// deadlock is the type of the problem of a call that would wait for itself.
const deadlock = "deadlock"

// A rule makes a problem of the errors that match is. tell says that the text of the error is
// the detail. The outcome is unknown if the error may come after a part of the work was committed. That of a
// call of a method is not that of the rule: see callError.
type rule struct {
	is      error
	problem problem
	tell    bool
}

// rules are tried in their order, because an error may match more than one.
var rules = []rule{
	{is: auth.ErrNoCredentials, problem: problem{Type: "no-credentials", Title: "The request has no credentials.", Status: 401, Outcome: none}},
	{is: auth.ErrBadCredentials, problem: problem{Type: "bad-credentials", Title: "The credentials are wrong, revoked or too old.", Status: 401, Outcome: none}},

	{is: object.ErrUnknown, problem: problem{Type: "outcome-unknown", Title: "The wait has ended before the work.", Status: 504, Outcome: unknown, Retryable: true}},
	{is: object.ErrStorage, problem: problem{Type: "storage-failed", Title: "The store has failed.", Status: 503, Outcome: unknown}},
	{is: object.ErrNoSpace, problem: problem{Type: "no-space", Title: "The disk is nearly full.", Status: 507, Outcome: none, Retryable: true}},
	{is: object.ErrShutdown, problem: problem{Type: "shutting-down", Title: "The host is shutting down.", Status: 503, Outcome: none, Retryable: true, retryAfter: 1}},
	{is: object.ErrPanic, problem: problem{Type: "panic", Title: "The handler has panicked.", Status: 500, Outcome: unknown}},
	{is: object.ErrConstructor, problem: problem{Type: "constructor-failed", Title: "The object cannot start.", Status: 500, Outcome: unknown, Retryable: true}},
	{is: object.ErrDeadlock, problem: problem{Type: deadlock, Title: "The call would wait for itself.", Status: 409, Outcome: none}, tell: true},
	{is: object.ErrOverloaded, problem: problem{Type: "overloaded", Title: "Too many calls wait for the object.", Status: 429, Outcome: none, Retryable: true, retryAfter: 1}},
	{is: object.ErrOutboxFull, problem: problem{Type: "outbox-full", Title: "Too many messages wait.", Status: 429, Outcome: none, Retryable: true, retryAfter: 1}},
	{is: object.ErrReset, problem: problem{Type: "instance-gone", Title: "The object was deleted or taken out of memory meanwhile.", Status: 503, Outcome: unknown, Retryable: true}},
	{is: object.ErrBadName, problem: problem{Type: "bad-name", Title: "Nothing can have this name.", Status: 400, Outcome: none}, tell: true},
	{is: object.ErrBadCursor, problem: problem{Type: "bad-cursor", Title: "The cursor is not that of a page.", Status: 400, Outcome: none}},
	{is: object.ErrKeyReused, problem: problem{Type: "key-reused", Title: "The Idempotency-Key was used with another argument.", Status: 422, Outcome: none}},
	{is: object.ErrBadArgument, problem: problem{Type: "bad-argument", Title: "The argument cannot be decoded.", Status: 400, Outcome: none}, tell: true},
}

// partError is the error of a change that is made in several commits: some may have been made before it.
type partError struct{ error }

func (e *partError) Unwrap() error { return e.error }

// inParts returns the partError of an error; nil for nil.
func inParts(err error) error {
	if err == nil {
		return nil
	}
	return &partError{err}
}

// problemOf returns the problem of an error. An error that no rule knows is the server's own.
func problemOf(err error) *problem {
	var part *partError
	if errors.As(err, &part) {
		p := *problemOf(part.error)
		p.Outcome = unknown
		return &p
	}
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	if p := triesProblem(err); p != nil {
		return p
	}
	var own interface{ problem() *problem } // a callError or an auditError
	if errors.As(err, &own) {
		return own.problem()
	}
	if p := ruled(err, rules, jobRules, transferRules, webhookRules); p != nil {
		return p
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &problem{Type: waitEnded, Title: "The request has taken too long.", Status: http.StatusGatewayTimeout, Outcome: unknown}
	}
	return &problem{Type: "internal", Title: "The server has failed.", Status: http.StatusInternalServerError, Outcome: unknown}
}

// ruled returns the problem of the first rule that an error matches, or nil.
func ruled(err error, tables ...[]rule) *problem {
	for _, r := range slices.Concat(tables...) {
		if errors.Is(err, r.is) {
			p := r.problem
			if r.tell {
				p.Detail = err.Error()
			}
			return &p
		}
	}
	return nil
}

// maxDetailBytes bounds the text of an error in an answer, because a handler may return any text.
const maxDetailBytes = 4 << 10

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
	if p.Type == deadlock && !x.seesAll() && !x.callsAll() {
		p.Detail = "" // it names all objects of the circle
	}
	if len(p.Detail) > maxDetailBytes {
		p.Detail = strings.ToValidUTF8(p.Detail[:maxDetailBytes], "") + "…"
	}
	x.answering()
	if x.route != nil && x.route.page {
		x.failPage(&p)
		return
	}
	w.status = p.Status
	p.write(w.ResponseWriter)
}

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter) {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // it has texts and numbers only
	}
	p.send(w, "application/problem+json", append(b, '\n'))
}

// send answers with the problem as a body that is written already.
func (p *problem) send(w http.ResponseWriter, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body)
}

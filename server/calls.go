package server

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// callRoutes are the routes of calls of methods.
func (s *Server) callRoutes() []route {
	return []route{
		{method: "POST", pattern: "/v1/objects/{class}/{name}/call/{method}", access: granted, single: true, request: raw{}, answer: raw{}, handle: (*exchange).callByPath,
			headers: callHeaders,
			help:    "Call a method of an object. Body and answer are the argument and the answer in the codec of the host."},
		{method: "POST", pattern: "/v1/call", access: granted, single: true, request: namedCall{}, answer: raw{}, handle: (*exchange).callByBody,
			headers: callHeaders,
			help:    "Call a method of an object that the body names, for names that a path or a proxy changes."},
	}
}

// callHeaders are the headers of a call.
var callHeaders = []param{
	{name: "Idempotency-Key", help: "1 to 512 bytes: for a day, a repeat with the same key gets the first answer; with another argument it is refused"},
	{name: "Holdfast-Timeout", help: "how long to wait for the answer, for example 2s; the end of the wait does not end the handler"},
}

// namedCall is the body of POST /v1/call. The argument is JSON, or base64 of bytes in the codec of the host.
type namedCall struct {
	Class         string          `json:"class"`
	Name          string          `json:"name"`
	Method        string          `json:"method"`
	Argument      json.RawMessage `json:"argument,omitempty"`
	ArgumentBytes []byte          `json:"argumentBytes,omitempty"`
}

func (x *exchange) callByPath() error {
	id, method := storage.ID{Class: x.path("class"), Name: x.path("name")}, x.path("method")
	if err := x.mayCall(id, method); err != nil {
		return err
	}
	argument, err := x.body()
	if err != nil {
		return err
	}
	return x.call(id, method, argument)
}

func (x *exchange) callByBody() error {
	var c namedCall
	if err := x.decode(&c); err != nil {
		return err
	}
	if c.Argument != nil && c.ArgumentBytes != nil {
		return badRequest("the body has both argument and argumentBytes")
	}
	id := storage.ID{Class: c.Class, Name: c.Name}
	if err := x.mayCall(id, c.Method); err != nil {
		return err
	}
	return x.call(id, c.Method, append(c.Argument, c.ArgumentBytes...))
}

// mayCall returns a problem unless a grant of the principal covers the call, and Config exposes
// the method. The problem is the same for both, so that it does not tell a caller without the
// grant which methods and objects there are.
func (x *exchange) mayCall(id storage.ID, method string) error {
	if err := id.Validate(); err != nil {
		return fmt.Errorf("%w: %w", object.ErrBadName, err)
	}
	_, ok := x.exposed[id.Class][method]
	if may := x.who.MayCall(id.Class, id.Name, method); !ok || !may {
		return &problem{refuses: !may, Type: "unknown-method", Title: "There is no such method that the principal may call.", Status: http.StatusNotFound, Outcome: none}
	}
	return nil
}

// call calls a method and answers with its answer. The end of the wait, by its time or because
// the client has gone, does not end the handler; Config.HandlerTimeout ends its context. Where it can, the
// handler runs on this goroutine, and hangUp answers at the end of the wait.
func (x *exchange) call(id storage.ID, method string, argument []byte) error {
	timeout, err := x.timeout()
	if err != nil {
		return err
	}
	key, err := x.key()
	if err != nil {
		return err
	}
	opts := append(make([]object.CallOption, 0, 4), object.Detached(), object.HandlerTimeout(x.config.HandlerTimeout))
	if key != "" {
		opts = append(opts, object.Idempotent(storedKey(x.who.ID, key), 0))
	}
	if x.mayHangUp() {
		opts = append(opts, object.Inline(func(err error) { x.hangUp(&callError{err: err, keyed: key != ""}) }))
	}
	seams := x.host.Seams()
	ctx, cancel := seams.WithDeadline(x.r.Context(), seams.Clock.Now().Add(timeout), context.DeadlineExceeded)
	defer cancel()
	answer, err := x.host.CallBytes(ctx, id.Class, id.Name, method, argument, opts...)
	if x.hasHungUp() {
		return nil
	}
	if err != nil {
		return &callError{err: err, timedOut: ctx.Err() != nil, keyed: key != ""}
	}
	return x.bytes(http.StatusOK, answer)
}

// timeout returns how long the call waits for its answer.
func (x *exchange) timeout() (time.Duration, error) {
	header := x.r.Header["Holdfast-Timeout"]
	if len(header) == 0 {
		return x.config.Timeout, nil
	}
	d, err := time.ParseDuration(header[0])
	if err != nil || d <= 0 || d > x.config.Timeout {
		return 0, badRequest(fmt.Sprintf("Holdfast-Timeout takes a duration above 0 and up to %v, for example 2s", x.config.Timeout))
	}
	return d, nil
}

// maxKeyBytes bounds the header Idempotency-Key.
const maxKeyBytes = 512

// key returns the header Idempotency-Key; empty if the request has none.
func (x *exchange) key() (string, error) {
	header := x.r.Header["Idempotency-Key"]
	switch {
	case len(header) == 0:
		return "", nil
	case header[0] == "" || len(header[0]) > maxKeyBytes:
		return "", badRequest(fmt.Sprintf("Idempotency-Key takes 1 to %d bytes", maxKeyBytes))
	}
	return header[0], nil
}

// storedKey returns the key of the store for a key of a principal. Two principals never share
// one, because the length of the id stands before it. The hash bounds the length.
func storedKey(principal, key string) string {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 8+2*64), uint64(len(principal))) // more than most have
	b = append(append(b, principal...), key...)
	sum := sha256.Sum256(b)
	text := append(make([]byte, 0, len("http/")+2*len(sum)), "http/"...)
	return string(hex.AppendEncode(text, sum[:]))
}

// callError is the error of a call of a method.
type callError struct {
	err      error // of CallBytes
	timedOut bool  // the wait has ended
	keyed    bool  // the request has an Idempotency-Key
}

func (e *callError) Error() string { return e.err.Error() }

func (e *callError) Unwrap() error { return e.err }

// problem returns the problem of the call. Its outcome is none only if the runtime knows that
// nothing is stored. An error that no rule knows is the handler's own.
func (e *callError) problem() *problem {
	p := ruled(e.err, rules) // the errors of jobs are the handler's own here
	switch untouched := object.Untouched(e.err); {
	case p != nil:
	case e.timedOut && untouched && (errors.Is(e.err, context.DeadlineExceeded) || errors.Is(e.err, context.Canceled)):
		p = &problem{Type: waitEnded, Title: "The call has waited too long for its turn, and will not run.", Status: http.StatusGatewayTimeout, Retryable: true}
	default:
		p = &problem{Type: "handler-failed", Title: "The handler has returned an error.", Status: http.StatusUnprocessableEntity, Detail: e.err.Error()}
	}
	p.Outcome = unknown
	if object.Untouched(e.err) {
		p.Outcome = none
	}
	if p.Type == "outcome-unknown" {
		p.Detail = "the call may take effect yet; give the next call an Idempotency-Key, so that it can be repeated"
		if e.keyed {
			p.Detail = "the call may take effect yet; repeat the request with the same Idempotency-Key to get its answer"
		}
	}
	p.Retryable = p.Retryable && (p.Outcome == none || e.keyed)
	return p
}

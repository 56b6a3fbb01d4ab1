package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/server/auth"
)

// exchange is one request on its way through the server. One goroutine at a time uses it: that of the request, but for hangUp.
type exchange struct {
	*Server
	w        http.ResponseWriter
	begun    response                 // behind w, but for a test's
	controls *http.ResponseController // see control
	r        *http.Request
	route    *route // nil until the multiplexer has found it
	who      auth.Principal
	query    url.Values // the parameters that the route has
	err      error      // of the handler
	timed    bool       // the body has had a deadline
	polls    bool       // it is a long poll: its time tells nothing of the server
	// hungUp is when hangUp has answered; zero: it has not.
	hungUp time.Time
	// kind and length are the values of two headers of the answer, here because they take no allocation then.
	kind, length [1]string
}

// json answers with a value in JSON.
func (x *exchange) json(status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return x.answer(status, "application/json", append(b, '\n'))
}

// bytes answers with bytes in the codec of the host.
func (x *exchange) bytes(status int, b []byte) error {
	kind := "application/octet-stream"
	if json.Valid(b) {
		kind = "application/json"
	}
	return x.answer(status, kind, b)
}

// empty answers without a body.
func (x *exchange) empty() error {
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

// answer writes a whole answer. An error of the connection is dropped, because the client has gone.
func (x *exchange) answer(status int, kind string, b []byte) error {
	h := x.w.Header()
	x.kind[0], x.length[0] = kind, strconv.Itoa(len(b))
	h["Content-Type"], h["Content-Length"] = x.kind[:], x.length[:]
	x.w.WriteHeader(status)
	_, _ = x.w.Write(b)
	return nil
}

// body reads the body, at most Config.MaxBodyBytes of it, and within the time of limits.
func (x *exchange) body() ([]byte, error) { return x.bodyUpTo(x.config.MaxBodyBytes) }

// bodyUpTo is body with a limit of its own.
func (x *exchange) bodyUpTo(limit int64) ([]byte, error) {
	if err := x.takesBody(limit); err != nil {
		return nil, err
	}
	body, length := x.r.Body, x.r.ContentLength
	if body == http.NoBody {
		return nil, nil
	}
	if length <= 0 { // not known, so it may be too long
		body = http.MaxBytesReader(lowest(x.w), body, limit)
	}
	control := x.control()
	defer x.expects(control)()
	b, err := x.readParts(control, body, int(length), limit)
	switch {
	case err != nil:
		return nil, bodyProblem(err)
	case int64(len(b)) > limit: // a handler around the server has made it longer
		return nil, tooLarge(limit)
	}
	_ = control.SetReadDeadline(time.Time{}) // without it the end of the time would look as if the client had gone
	return b, nil
}

// takesBody refuses a body that is compressed, or tells that it is too long.
func (x *exchange) takesBody(limit int64) error {
	if e := x.header("Content-Encoding"); e != "" && e != "identity" {
		return &problem{Type: "bad-encoding", Title: "The server takes no compressed body.", Status: http.StatusUnsupportedMediaType, Outcome: none}
	}
	if x.r.ContentLength > limit {
		return tooLarge(limit)
	}
	x.timed = true
	return nil
}

// expects gives "100 Continue", which the first read of a body writes, a deadline until done is called.
func (x *exchange) expects(control *http.ResponseController) (done func()) {
	if x.header("Expect") == "" {
		return func() {}
	}
	_ = control.SetWriteDeadline(time.Now().Add(x.limits.answerTime)) // that of an earlier answer may be over
	return func() { _ = control.SetWriteDeadline(time.Time{}) }       // that of HTTP/2 would end the request before its answer begins
}

// bodyTo writes the body to w, at most limit bytes of it and within the time of bodyUpTo.
func (x *exchange) bodyTo(w io.Writer, limit int64) error {
	if err := x.takesBody(limit); err != nil {
		return err
	}
	control := x.control()
	defer x.expects(control)()
	body := http.MaxBytesReader(lowest(x.w), x.r.Body, limit)
	part := make([]byte, bodyPart)
	for began, size := time.Now(), 0; ; {
		_ = control.SetReadDeadline(began.Add(x.bodyTime(size))) // a test's writer may have none
		n, err := body.Read(part)
		if size += n; n > 0 {
			if _, err := w.Write(part[:n]); err != nil {
				return fmt.Errorf("body: %w", err)
			}
		}
		if err == io.EOF {
			_ = control.SetReadDeadline(time.Time{}) // without it the end of the time would look as if the client had gone
			return nil
		}
		if err != nil {
			return bodyProblem(err)
		}
	}
}

// bodyTime is how long a body may take from its begin until more of it arrives than so many bytes.
func (x *exchange) bodyTime(size int) time.Duration {
	return x.limits.bodyTime + time.Duration(size/bodyPart)*x.limits.bodyTimePerPart
}

// readParts reads a body to its end, or to a part behind the limit. It has bodyTime, and bodyTimePerPart more for each bodyPart that has arrived. The
// length is the one that the client tells, if it does: most bodies then take one read and one allocation.
func (x *exchange) readParts(control *http.ResponseController, body io.Reader, length int, limit int64) (b []byte, err error) {
	first := bytes.MinRead
	if length > 0 {
		first = min(length, bodyPart) + 1 // one more, so that the last read can find the end
	}
	b = make([]byte, 0, first)
	for began, more := time.Now(), 0; ; {
		if len(b) >= more {
			_ = control.SetReadDeadline(began.Add(x.bodyTime(len(b)))) // a test's writer may have none
			more = (len(b)/bodyPart + 1) * bodyPart
		}
		b = slices.Grow(b, 1)
		n, err := body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF || int64(len(b)) > limit {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// control returns the controller of the connection.
func (x *exchange) control() *http.ResponseController {
	if x.controls == nil {
		x.controls = http.NewResponseController(x.w)
	}
	return x.controls
}

// header returns the first value of a header of the request; empty if it is not there. The name is in its canonical form.
func (x *exchange) header(name string) string {
	if values := x.r.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// lowest returns the writer below all wrappers, that of this server and those of handlers around it. That of net/http
// closes the connection after a body that is too large.
func lowest(w http.ResponseWriter) http.ResponseWriter {
	for {
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = wrapper.Unwrap()
	}
}

// bodyProblem returns the problem of a body that cannot be read.
func bodyProblem(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &problem{Type: "slow-body", Title: "The body did not arrive in time.", Status: http.StatusRequestTimeout, Outcome: none, Retryable: true}
	}
	return badRequest("the body cannot be read")
}

func tooLarge(limit int64) error {
	return &problem{Type: "body-too-large", Title: "The body is too large.", Status: http.StatusRequestEntityTooLarge, Outcome: none,
		Detail: fmt.Sprintf("the limit is %d bytes", limit)}
}

// decode reads the body as one JSON value into *v. A field that *v does not have is refused,
// so that a misspelt field is not left out silently.
func (x *exchange) decode(v any) error {
	b, err := x.body()
	if err != nil {
		return err
	}
	if err := unchanged(b); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return badRequest("the body: " + err.Error())
	}
	if _, err := d.Token(); err != io.EOF {
		return badRequest("the body has more than one JSON value")
	}
	return nil
}

// unchanged refuses JSON with text that is none: bytes that are no UTF-8, and one half of a surrogate pair
// without the other. A decoder makes U+FFFD of both, so that two names would become one.
func unchanged(b []byte) error {
	if !utf8.Valid(b) {
		return badRequest("the body is no UTF-8")
	}
	for i := bytes.IndexByte(b, '\\'); i >= 0 && i < len(b); {
		switch {
		case b[i] != '\\':
			i++
		case !utf16.IsSurrogate(escaped(b[i:])):
			i += 2
		case utf16.DecodeRune(escaped(b[i:]), escaped(b[i+escapeBytes:])) == utf8.RuneError:
			return badRequest("the body has half a surrogate pair, " + string(b[i:i+escapeBytes]) + ", which is no character")
		default:
			i += 2 * escapeBytes
		}
	}
	return nil
}

// escapeBytes is the length of an escape such as \ud800.
const escapeBytes = 6

// escaped returns the code unit of the escape with which b begins; 0 if there is none.
func escaped(b []byte) rune {
	if len(b) < escapeBytes || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	unit, err := strconv.ParseUint(string(b[2:escapeBytes]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(unit)
}

// parseQuery checks the query against the parameters of the route.
func (x *exchange) parseQuery() error {
	if x.r.URL.RawQuery == "" {
		return nil // most calls have none, and a nil map reads as an empty one
	}
	query, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return badRequest("the query cannot be parsed")
	}
	for name, values := range query {
		p := x.route.param(name)
		switch {
		case p == nil:
			return badRequest(fmt.Sprintf("there is no parameter %q", name))
		case len(values) > 1:
			return badRequest("the parameter " + name + " is there more than once")
		case !p.kind.takes(values[0]):
			return badRequest("the parameter " + name + " takes " + p.kind.String())
		}
	}
	x.query = query
	return nil
}

// param returns a parameter of the route, or nil.
func (rt *route) param(name string) *param {
	for i := range rt.params {
		if rt.params[i].name == name {
			return &rt.params[i]
		}
	}
	return nil
}

// takes reports whether a value is of the kind.
func (k paramKind) takes(value string) bool {
	switch k {
	case number:
		_, err := strconv.ParseUint(value, 10, 31)
		return err == nil
	case flag:
		return value == "0" || value == "1"
	}
	return true
}

// String describes the values of a parameter of the kind.
func (k paramKind) String() string {
	return [...]string{text: "text", number: "a whole number from 0 to 2147483647", flag: "0 or 1"}[k]
}

// path returns the value of a part of the path in braces, as it was before it was encoded.
func (x *exchange) path(name string) string { return x.r.PathValue(name) }

// param returns a parameter of the query; empty if it is not there. It must be in the table.
func (x *exchange) param(name string) string {
	if x.route.param(name) == nil {
		panic("server: the route has no parameter " + name)
	}
	return x.query.Get(name)
}

// number returns a parameter of the kind number; zero if it is not there.
func (x *exchange) number(name string) int {
	n, _ := strconv.Atoi(x.param(name)) // parseQuery has checked it
	return n
}

// flag reports whether a parameter of the kind flag is 1.
func (x *exchange) flag(name string) bool { return x.param(name) == "1" }

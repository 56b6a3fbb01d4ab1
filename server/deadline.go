package server

import (
	"net/http"
	"strconv"
	"time"
)

// bodyRest is the part of the body that is still to come when the answer begins.
type bodyRest uint8

const (
	bodyUnread bodyRest = iota // all of it
	bodyLate                   // it has had its time, or is too long
	bodyEnded                  // none
)

// answering sets the deadlines of an answer that begins, so that a client that does not take
// it, or does not send the rest of its body, holds the connection for a time that is known.
// Before it sends an answer, net/http reads what is left of a short body. A writer that has no
// deadlines, for example of a test, has none.
func (x *exchange) answering() {
	now, control := time.Now(), http.NewResponseController(x.w)
	length, _ := strconv.Atoi(x.w.Header().Get("Content-Length")) // none: a stream, or a short answer
	parts := time.Duration(length / bodyPart)
	_ = control.SetWriteDeadline(now.Add(x.limits.answerTime + parts*x.limits.bodyTimePerPart))
	switch {
	case x.r.Body == nil || x.r.Body == http.NoBody || x.rest == bodyEnded:
	case x.rest == bodyLate:
		_ = control.SetReadDeadline(now)
	default:
		_ = control.SetReadDeadline(now.Add(x.limits.bodyTime))
	}
}

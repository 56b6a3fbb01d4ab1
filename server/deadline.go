package server

import (
	"net/http"
	"strconv"
	"time"
)

// answering sets the deadlines of an answer that begins, so that a client that does not take
// it, or does not send its body, holds the connection for a time that is known. net/http reads
// the rest of a short body before it sends the answer; a body that a handler has begun to
// read has its deadline. A writer without deadlines, for example of a test, gets none.
func (x *exchange) answering() {
	now, control := time.Now(), x.control()
	length, _ := strconv.Atoi(x.w.Header().Get("Content-Length")) // none: a stream, or a short answer
	parts := time.Duration(length / bodyPart)
	_ = control.SetWriteDeadline(now.Add(x.limits.answerTime + parts*x.limits.bodyTimePerPart))
	if !x.timed && x.r.Body != nil && x.r.Body != http.NoBody {
		_ = control.SetReadDeadline(now.Add(x.limits.bodyTime))
	}
}

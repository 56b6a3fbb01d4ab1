package server

import (
	"net/http"
	"time"
)

// connection is the methods that hangUp needs of a ResponseWriter. That of net/http has them for a request of HTTP/1; a
// writer that a handler around the server has put before it seldom has them all.
type connection interface {
	http.Hijacker
	FlushError() error
	SetWriteDeadline(time.Time) error
}

// mayHangUp reports whether hangUp can answer the request.
func (x *exchange) mayHangUp() bool {
	w := x.begun.ResponseWriter
	_, direct := w.(connection)
	return direct && lowest(w) == w
}

// hangUp answers a call whose handler keeps the goroutine of the request, and closes the connection, which net/http would
// hold until the handler returns. The caller sees to it that no other goroutine uses the exchange meanwhile.
func (x *exchange) hangUp(err error) {
	x.hungUp = time.Now()
	_ = x.guard(func() error {
		x.w.Header().Set("Connection", "close")
		x.fail(err)
		control := x.control()
		_ = control.Flush() // a client that has gone gets nothing
		if c, _, err := control.Hijack(); err == nil {
			_ = c.Close()
		}
		return nil
	})
}

// hasHungUp reports whether hangUp has answered.
func (x *exchange) hasHungUp() bool { return !x.hungUp.IsZero() }

// took is how long the request has taken up to its answer.
func (x *exchange) took(began time.Time) time.Duration {
	if x.hasHungUp() {
		return x.hungUp.Sub(began)
	}
	return time.Since(began)
}

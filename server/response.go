package server

import "net/http"

// response is the ResponseWriter of one request. It drops the answers of the multiplexer to a
// request without a route, because those are no problems as RFC 9457 has them, and it knows
// whether an answer has begun. It is used as its exchange is.
type response struct {
	http.ResponseWriter
	exchange *exchange
	status   int // zero: the answer has not begun
}

// WriteHeader begins the answer.
func (w *response) WriteHeader(status int) {
	if w.exchange.route == nil {
		w.status = status
		return
	}
	if status >= 200 && w.status == 0 {
		w.status = status
		w.exchange.answering()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body.
func (w *response) Write(b []byte) (int, error) {
	if w.exchange.route == nil {
		return len(b), nil
	}
	if w.status == 0 {
		w.status = http.StatusOK
		w.exchange.answering()
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

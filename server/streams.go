package server

import (
	"context"
	"net/http"
	"sync"
)

// streams are the streams and the long polls that are under way. The mutex guards all fields.
type streams struct {
	mu    sync.Mutex
	of    map[string]int                  // by principal
	all   map[int]context.CancelCauseFunc // by a number of their own
	next  int
	ended bool
}

// enter counts a stream of a principal, or refuses it. The context ends with that of the request,
// and with the server. The caller calls leave.
func (s *streams) enter(ctx context.Context, who string, most limits) (_ context.Context, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, nil, &problem{Type: "shutting-down", Title: "The server is closing.", Status: http.StatusServiceUnavailable, Outcome: none, Retryable: true, retryAfter: 1}
	}
	if len(s.all) >= most.streams || s.of[who] >= most.streamsEach {
		return nil, nil, &problem{Type: "too-many-streams", Title: "Too many streams and long polls are open.", Status: http.StatusTooManyRequests, Outcome: none, Retryable: true, retryAfter: 5}
	}
	if s.all == nil {
		s.all, s.of = make(map[int]context.CancelCauseFunc), make(map[string]int)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.next++
	key := s.next
	s.all[key] = cancel
	s.of[who]++
	return ctx, func() { s.leave(key, who); cancel(nil) }, nil
}

// poll counts a long poll as a stream is counted, or refuses it. Its wait ends by untilEnd. The
// caller calls leave.
func (x *exchange) poll() (leave func(), err error) {
	_, leave, err = x.streams.enter(x.r.Context(), x.who.ID, x.limits)
	x.polls = err == nil
	return leave, err
}

// leave takes a stream out.
func (s *streams) leave(key int, who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, key)
	if s.of[who]--; s.of[who] == 0 {
		delete(s.of, who)
	}
}

// count returns how many are under way.
func (s *streams) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// end has all streams say bye, and refuses new ones.
func (s *streams) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, cancel := range s.all {
		cancel(errStreamClosed)
	}
}

package server

import (
	"container/list"
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxRates bounds the principals with a rate in memory. The one that was seen the longest time
// ago goes, and begins with a full bucket when it comes again.
const maxRates = 10_000

// rates bounds the requests of each principal. It is nil for no bound.
type rates struct {
	perSecond rate.Limit
	burst     int

	mu   sync.Mutex // guards all below
	byID map[string]*list.Element
	seen list.List // of *bucket, the newest first
}

type bucket struct {
	id      string
	limiter *rate.Limiter
}

// newRates returns nil for no bound. A principal may make the requests of a second at once.
func newRates(perSecond float64) *rates {
	if perSecond == 0 {
		return nil
	}
	return &rates{perSecond: rate.Limit(perSecond), burst: int(max(1, math.Ceil(perSecond))), byID: map[string]*list.Element{}}
}

// take counts a request of a principal, or returns a problem 429.
func (r *rates) take(id string) error {
	if r == nil {
		return nil
	}
	now := time.Now()
	reservation := r.bucket(id).ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	reservation.CancelAt(now)
	return &problem{Type: "rate", Title: "The principal makes too many requests.", Status: http.StatusTooManyRequests, Outcome: none, Retryable: true,
		retryAfter: int(math.Ceil(wait.Seconds()))}
}

// bucket returns the limiter of a principal.
func (r *rates) bucket(id string) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.byID[id]; e != nil {
		r.seen.MoveToFront(e)
		return e.Value.(*bucket).limiter
	}
	if len(r.byID) == maxRates {
		last := r.seen.Back()
		r.seen.Remove(last)
		delete(r.byID, last.Value.(*bucket).id)
	}
	b := &bucket{id, rate.NewLimiter(r.perSecond, r.burst)}
	r.byID[id] = r.seen.PushFront(b)
	return b.limiter
}

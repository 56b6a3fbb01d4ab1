package steps

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// Timer collects how long the steps of a worker take. The zero Timer is ready, and many
// goroutines may use it.
type Timer struct {
	mu  sync.Mutex
	lat *measure.Latencies // guarded by mu; nil: nothing is recorded
}

// Begin forgets the steps so far, and records those to come.
func (t *Timer) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lat = measure.NewLatencies()
}

// Step records a step that ends now, if Begin was called, and returns the time.
func (t *Timer) Step(from time.Time) time.Time {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lat != nil {
		t.lat.Record(now.Sub(from))
	}
	return now
}

// End returns the latencies since Begin, and records no more.
func (t *Timer) End() measure.Quantiles {
	t.mu.Lock()
	defer t.mu.Unlock()
	lat := t.lat
	if lat == nil {
		return measure.Quantiles{}
	}
	t.lat = nil
	return lat.Quantiles()
}

// ServeHTTP begins on a POST, and on any other method ends and answers the quantiles, for a
// worker in another process than its callers.
func (t *Timer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		t.Begin()
		return
	}
	_ = json.NewEncoder(w).Encode(t.End()) // the client is gone if it fails
}

package measure

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	latencyMax    = int64(10 * time.Minute)
	latencyDigits = 2
	recorders     = 8
)

// Latencies collects durations from many tasks in HDR histograms: nanoseconds,
// two digits.
type Latencies struct {
	next  atomic.Uint32
	parts [recorders]struct {
		mu sync.Mutex
		h  *hdrhistogram.Histogram
		_  [48]byte // keeps neighbours off one cache line
	}
}

// NewLatencies makes an empty collection.
func NewLatencies() *Latencies {
	l := &Latencies{}
	for i := range l.parts {
		l.parts[i].h = hdrhistogram.New(1, latencyMax, latencyDigits)
	}
	return l
}

// Record adds a duration. Any task may call it.
func (l *Latencies) Record(d time.Duration) { l.RecordAs(int(l.next.Add(1)), d) }

// RecordAs is Record for a numbered worker, which mostly meets no other.
func (l *Latencies) RecordAs(worker int, d time.Duration) {
	p := &l.parts[worker%recorders]
	n := min(max(int64(d), 1), latencyMax)
	p.mu.Lock()
	defer p.mu.Unlock()
	// A value in bounds is never refused.
	_ = p.h.RecordValue(n)
}

// Quantiles of latencies, in microseconds.
type Quantiles struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// Quantiles sums up the latencies so far.
func (l *Latencies) Quantiles() Quantiles {
	h := hdrhistogram.New(1, latencyMax, latencyDigits)
	for i := range l.parts {
		p := &l.parts[i]
		p.mu.Lock()
		h.Merge(p.h)
		p.mu.Unlock()
	}
	us := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1e3 }
	return Quantiles{Count: h.TotalCount(), P50: us(50), P99: us(99), P999: us(99.9), Max: float64(h.Max()) / 1e3}
}

package server

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/internal/metric"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/server/dashboard"
)

const (
	// sampleEvery is the time between two samples of the history, and maxSamples how many are kept: those of an hour.
	sampleEvery = 10 * time.Second
	maxSamples  = 361
	// rateOver is the time over which the present rate of a pool is measured.
	rateOver = 5 * time.Minute
)

// history has the newest hour of some metrics of the host, for the pages. It begins with Serve or with the first page
// that shows it, so that a server without pages pays nothing. A longer one is the work of Prometheus.
type history struct {
	host  *prometheus.Registry
	begin sync.Once

	mu      sync.Mutex // guards samples
	samples []sample   // the oldest first
}

// sample is the state of the metrics at one time.
type sample struct {
	at    time.Time
	ended map[string]outcomes // executions, by class
	waits []dashboard.Waits   // calls in mailboxes, the longest wait first
}

// outcomes count executions.
type outcomes struct{ done, failed float64 }

// newHistory returns a history without a sample.
func newHistory(c prometheus.Collector) *history {
	h := &history{host: prometheus.NewRegistry()}
	h.host.MustRegister(c)
	return h
}

// recordHistory takes the first sample and lets the others follow, unless that was done before.
func (s *Server) recordHistory() {
	s.history.begin.Do(func() {
		s.history.take(time.Now())
		s.spawn(func() { s.history.run(s.host.Done()) })
	})
}

// run takes a sample now and then until done is closed.
func (h *history) run(done <-chan struct{}) {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			h.take(time.Now())
		}
	}
}

// take takes a sample.
func (h *history) take(now time.Time) {
	s := sample{at: now, ended: map[string]outcomes{}}
	families, err := h.host.Gather()
	if err != nil {
		return // two metrics have one name, which a test of the host rules out
	}
	ages := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			label := map[string]string{}
			for _, l := range m.GetLabel() {
				label[l.GetName()] = l.GetValue()
			}
			class := label["class"]
			switch f.GetName() {
			case metric.Executions.Name:
				s.ended[class] = s.ended[class].plus(label["outcome"], m.GetCounter().GetValue())
			case metric.CallsWaitingAge.Name:
				ages[class] = m.GetGauge().GetValue()
			case metric.CallsWaiting.Name:
				if n := int(m.GetGauge().GetValue()); n > 0 {
					s.waits = append(s.waits, dashboard.Waits{Class: class, Calls: n})
				}
			}
		}
	}
	for i, w := range s.waits {
		s.waits[i].Longest = time.Duration(ages[w.Class] * float64(time.Second))
	}
	slices.SortStableFunc(s.waits, func(a, b dashboard.Waits) int { return int(b.Longest - a.Longest) })
	h.mu.Lock()
	defer h.mu.Unlock()
	h.samples = append(h.samples, s)
	h.samples = slices.Clone(h.samples[max(len(h.samples)-maxSamples, 0):])
}

// plus adds executions with an outcome. Those that were cancelled or put off have neither succeeded nor failed.
func (o outcomes) plus(outcome string, n float64) outcomes {
	switch engine.Kind(outcome) {
	case engine.Done, engine.Quit:
		o.done += n
	case engine.Again, "gave_up", engine.Recover: // a metric has no blank
		o.failed += n
	}
	return o
}

// newest returns all samples. Nothing changes them.
func (h *history) newest() []sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.samples
}

// all are the executions of all classes.
func (s sample) all() (o outcomes) {
	for _, c := range s.ended {
		o.done, o.failed = o.done+c.done, o.failed+c.failed
	}
	return o
}

// throughput returns how many executions have ended in each minute of the last hour, the oldest first.
func (h *history) throughput() (all []dashboard.Minute) {
	samples := h.newest()
	perMinute := int(time.Minute / sampleEvery)
	for end := len(samples) - 1; end > 0; end -= perMinute {
		begin := max(end-perMinute, 0)
		from, to := samples[begin].all(), samples[end].all()
		all = append(all, dashboard.Minute{From: samples[begin].at, To: samples[end].at, Done: int(to.done - from.done), Failed: int(to.failed - from.failed)})
	}
	slices.Reverse(all)
	return all
}

// waits are the calls that waited at the newest sample.
func (h *history) waits() (all []dashboard.Waits, at time.Time) {
	samples := h.newest()
	if len(samples) == 0 {
		return nil, at
	}
	last := samples[len(samples)-1]
	return last.waits, last.at
}

// rate returns how many executions of a class have succeeded in a second of late; zero if that is not known.
func (h *history) rate(class string) float64 {
	samples := h.newest()
	samples = samples[max(len(samples)-1-int(rateOver/sampleEvery), 0):]
	if len(samples) < 2 {
		return 0
	}
	first, last := samples[0], samples[len(samples)-1]
	return (last.ended[class].done - first.ended[class].done) / last.at.Sub(first.at).Seconds()
}

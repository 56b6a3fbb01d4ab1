package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-dev/holdfast/internal/metric"
	"github.com/holdfast-dev/holdfast/object"
)

// metrics are those of a host and of its server. Labels have patterns of routes and never paths,
// because paths have names of users, and there are any number of them.
type metrics struct {
	requests, dropped *prometheus.CounterVec
	seconds           *prometheus.HistogramVec
	page              http.Handler
}

// newMetrics returns the metrics of a server, all at zero. They are not compressed, because that
// takes more of the processor than the loopback takes of time.
func newMetrics(host *object.Host, streams *streams, backups *backups) *metrics {
	counter := func(m *metric.Metric) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
	}
	m := &metrics{
		requests: counter(metric.HTTPRequests),
		dropped:  counter(metric.StreamDropped),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: metric.HTTPSeconds.Name, Help: metric.HTTPSeconds.Help, Buckets: prometheus.ExponentialBuckets(100e-6, 4, 10),
		}, metric.HTTPSeconds.Labels),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(host.Collector(), m.requests, m.dropped, m.seconds, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: metric.Streams.Name, Help: metric.Streams.Help,
	}, func() float64 { return float64(streams.count()) }))
	if backups != nil {
		registry.MustRegister(backups)
	}
	m.page = promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true})
	return m
}

// count counts a request at its end, also one whose connection is cut.
func (x *exchange) count(began time.Time) {
	route, method := "none", "none" // those of a client may be anything
	if x.route != nil {
		route, method = x.route.pattern, x.route.method
	}
	status := x.begun.status
	if status == 0 {
		status = http.StatusOK // net/http writes it
	}
	lasts := x.route == nil || !x.route.streams() && !x.polls
	m := x.meter(route, method, status, lasts)
	m.requests.Inc()
	if lasts {
		m.seconds.Observe(x.took(began).Seconds())
	}
}

// meter is the metrics of one status of a route. Each route keeps the one of its newest answer, because
// most have the same status, and a search by labels costs more than to count.
type meter struct {
	status   int
	requests prometheus.Counter
	seconds  prometheus.Observer // nil if it was not needed: a metric that is looked for is shown
}

// meter returns the metrics of an answer, with those of its duration if it lasts.
func (x *exchange) meter(route, method string, status int, lasts bool) *meter {
	if x.route != nil {
		if m := x.route.meter.Load(); m != nil && m.status == status && (m.seconds != nil || !lasts) {
			return m
		}
	}
	m := &meter{status: status, requests: x.metrics.requests.WithLabelValues(route, method, strconv.Itoa(status))}
	if lasts {
		m.seconds = x.metrics.seconds.WithLabelValues(route)
	}
	if x.route != nil {
		x.route.meter.Store(m)
	}
	return m
}

// dropped counts a stream that has lost events, or that the server ends.
func (x *exchange) dropped(why string) { x.metrics.dropped.WithLabelValues(why).Inc() }

func (x *exchange) showMetrics() error {
	x.metrics.page.ServeHTTP(x.w, x.r)
	return nil
}

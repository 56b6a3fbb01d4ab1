package object

import (
	"errors"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts the events of a host. The table in docs/OPERATIONS.md gives the
// meaning of each metric.
type metrics struct {
	host *Host

	commit, gate, lag      prometheus.Histogram
	recoveries, executions *prometheus.CounterVec
	taskWait, taskRun      *prometheus.HistogramVec
}

// classCounts counts what happens to the objects of one class.
type classCounts struct {
	done, failed, panicked, evicted, overloaded, stuck, retries, dead atomic.Uint64
}

// turn counts a turn by its outcome.
func (c *classCounts) turn(err error) {
	switch {
	case err == nil:
		c.done.Add(1)
	case errors.Is(err, ErrPanic):
		c.panicked.Add(1)
	default:
		c.failed.Add(1)
	}
}

var (
	descTurns      = describe("turns_total", "Turns by class and outcome (done, failed, panicked).", "class", "outcome")
	descLive       = describe("objects_live", "Objects in memory.", "class")
	descEvicted    = describe("evictions_total", "Objects that left memory because they were idle.", "class")
	descOverloaded = describe("calls_overloaded_total", "Calls refused with ErrOverloaded, because the object's mailbox was full or too old.", "class")
	descStuck      = describe("turns_stuck_total", "Turns that held their object longer than the class's HoldLimit.", "class")
	descRetries    = describe("alarm_retries_total", "Failed alarm attempts that are followed by another.", "class")
	descDead       = describe("dead_letters_total", "Alarms that became dead letters.", "class")
	descWaiting    = describe("calls_waiting", "Calls in mailboxes.", "class")
	descWaitingAge = describe("calls_waiting_age_seconds", "How long the oldest call in a mailbox has waited.", "class")
	descPermitted  = describe("works_permitted", "Runs and flushes that execute, of a definition with Concurrency or StartRate.", "class")
	descPermitWait = describe("works_waiting", "Runs and flushes that are due and wait for Concurrency or StartRate.", "class")
	descUnsynced   = describe("commits_not_durable", "Commits that are applied and not yet known to be durable.")
	descBusy       = describe("busy", "Calls, works and hooks under way.")
	descAlarmsHeld = describe("alarms_held", "Alarms in the scheduler's memory.")
	descAlarmsOut  = describe("alarms_in_flight", "Alarms under way: the handler runs, or its commit is not yet durable.")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("holdfast_"+name, help, labels, nil)
}

func newMetrics(h *Host) *metrics {
	seconds := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "holdfast_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(10e-6, 4, 11),
		})
	}
	count := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "holdfast_" + name, Help: help}, labels)
	}
	long := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "holdfast_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(1e-3, 4, 13),
		}, []string{"class"})
	}
	return &metrics{
		host:       h,
		commit:     seconds("commit_seconds", "Time to apply a turn's batch, without the sync."),
		gate:       seconds("gate_seconds", "Time that replies waited until the commits they depend on were durable."),
		lag:        seconds("alarm_lag_seconds", "How late alarms reached their handlers."),
		recoveries: count("recoveries_total", "Executions and alarms recovered, by cause.", "cause"),
		executions: count("executions_total", "Executions of jobs that ended, by class and outcome.", "class", "outcome"),
		taskWait:   long("task_wait_seconds", "Time from when a task became ready until it began."),
		taskRun:    long("task_run_seconds", "Time that attempts at tasks took."),
	}
}

// CountExecution counts the end of an execution by its class and its outcome, in
// the host's metrics, where blanks of the outcome are underscores. Job types call it.
func (s *State) CountExecution(outcome string) {
	outcome = strings.ReplaceAll(outcome, " ", "_") // no allocation without a blank
	s.act.hosted.host.metrics.executions.WithLabelValues(s.act.id.Class, outcome).Inc()
}

// Collector returns the host's metrics for a Prometheus registry.
func (h *Host) Collector() prometheus.Collector { return h.metrics }

// Describe sends nothing: which metrics there are depends on the classes.
func (m *metrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends the present values.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	h := m.host
	for _, c := range []prometheus.Collector{m.commit, m.gate, m.lag, m.recoveries, m.executions, m.taskWait, m.taskRun} {
		c.Collect(out)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, name := range h.names {
		m.collectClass(out, h.hosted[name])
		m.collectTasks(out, h.hosted[name])
	}
	gauge(descUnsynced, float64(h.store.Pending()))
	gauge(descBusy, float64(h.life.running()))
	stats := h.alarms.Stats()
	gauge(descAlarmsHeld, float64(stats.Held))
	gauge(descAlarmsOut, float64(stats.InFlight))
}

func (m *metrics) collectClass(out chan<- prometheus.Metric, c *hosted) {
	count := func(d *prometheus.Desc, v *atomic.Uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v.Load()), labels...)
	}
	count(descTurns, &c.counts.done, c.name, "done")
	count(descTurns, &c.counts.failed, c.name, "failed")
	count(descTurns, &c.counts.panicked, c.name, "panicked")
	count(descEvicted, &c.counts.evicted, c.name)
	count(descOverloaded, &c.counts.overloaded, c.name)
	count(descStuck, &c.counts.stuck, c.name)
	count(descRetries, &c.counts.retries, c.name)
	count(descDead, &c.counts.dead, c.name)

	waiting, age := c.waiting()
	out <- prometheus.MustNewConstMetric(descLive, prometheus.GaugeValue, float64(c.live.Size()), c.name)
	out <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, float64(waiting), c.name)
	out <- prometheus.MustNewConstMetric(descWaitingAge, prometheus.GaugeValue, age, c.name)
	if c.permits != nil {
		taken, waiting := c.permits.count()
		out <- prometheus.MustNewConstMetric(descPermitted, prometheus.GaugeValue, float64(taken), c.name)
		out <- prometheus.MustNewConstMetric(descPermitWait, prometheus.GaugeValue, float64(waiting), c.name)
	}
}

// waiting counts the calls in the mailboxes of a class, and tells how long the
// oldest has waited, in seconds.
func (c *hosted) waiting() (calls int, age float64) {
	now := c.host.seams.Clock.Now()
	c.live.Range(func(_ string, a *activation) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		calls += a.queued
		if a.head != nil && !a.head.queuedAt.IsZero() {
			age = max(age, now.Sub(a.head.queuedAt).Seconds())
		}
		return true
	})
	return calls, age
}

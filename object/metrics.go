package object

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/internal/metric"
)

// metrics counts the events of a host, and is its prometheus.Collector. Package metric has the
// table of them, and docs/OPERATIONS.md gives the meaning of each. Histograms and counters are updated
// by turns and routines as they run; gauges are read from the host in Collect, so they cost a
// turn nothing.
type metrics struct {
	host   *Host
	opened time.Time

	commit, gate, lag      prometheus.Histogram
	recoveries, executions *prometheus.CounterVec
	repeats, repeated      *prometheus.CounterVec
	taskWait, taskRun      *prometheus.HistogramVec
	stale                  *prometheus.HistogramVec
}

// classCounts counts the turns, evictions, refusals and failures of one class. Each field
// is an atomic counter, because turns of many objects count at the same time.
type classCounts struct {
	done, failed, panicked, evicted, overloaded, stuck, retries, dead atomic.Uint64

	delivered, resent, buried atomic.Uint64 // messages
}

// turn counts a turn by its outcome: done, failed or panicked.
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
	descUp         = describe(metric.Up)
	descTurns      = describe(metric.Turns)
	descLive       = describe(metric.Live)
	descEvicted    = describe(metric.Evictions)
	descOverloaded = describe(metric.CallsOverloaded)
	descStuck      = describe(metric.TurnsStuck)
	descRetries    = describe(metric.AlarmRetries)
	descDead       = describe(metric.DeadLetters)
	descWaiting    = describe(metric.CallsWaiting)
	descWaitingAge = describe(metric.CallsWaitingAge)
	descPermitted  = describe(metric.WorksPermitted)
	descPermitWait = describe(metric.WorksWaiting)
	descUnsynced   = describe(metric.NotDurable)
	descSync       = describe(metric.SyncSeconds)
	descSyncing    = describe(metric.SyncUnderWay)
	descFree       = describe(metric.StorageFree)
	descFloor      = describe(metric.StorageFloor)
	descMessages   = describe(metric.Messages)
	descMessUnder  = describe(metric.MessagesUnder)
	descMessWait   = describe(metric.MessagesWaiting)
	descMessStored = describe(metric.MessagesStored)
	descMessPaused = describe(metric.ReceiversPaused)
	descOpened     = describe(metric.Opened)
	descBusy       = describe(metric.Busy)
	descAlarmsHeld = describe(metric.AlarmsHeld)
	descLabelled   = describe(metric.Labelled)
	descAlarmsOut  = describe(metric.AlarmsInFlight)
)

// describe returns the description of a row of the table.
func describe(m *metric.Metric) *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}

// newMetrics returns the metrics of a host, all at zero. Short times, such as a commit,
// have buckets from 10 µs to 10 s; the times of tasks have buckets from 1 ms to 4.6 hours.
func newMetrics(h *Host) *metrics {
	seconds := func(m *metric.Metric) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: m.Name, Help: m.Help, Buckets: prometheus.ExponentialBuckets(10e-6, 4, 11),
		})
	}
	count := func(m *metric.Metric) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
	}
	long := func(m *metric.Metric) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: m.Name, Help: m.Help, Buckets: prometheus.ExponentialBuckets(1e-3, 4, 13),
		}, m.Labels)
	}
	return &metrics{
		host:       h,
		opened:     h.seams.Clock.Now(),
		commit:     seconds(metric.CommitSeconds),
		gate:       seconds(metric.GateSeconds),
		lag:        seconds(metric.AlarmLag),
		recoveries: count(metric.Recoveries),
		executions: count(metric.Executions),
		repeats:    count(metric.Repeats),
		repeated:   count(metric.EntriesRead),
		stale:      long(metric.StaleSeconds),
		taskWait:   long(metric.TaskWait),
		taskRun:    long(metric.TaskRun),
	}
}

// recovered counts a recovery by its cause and the next step.
func (m *metrics) recovered(class, cause, action string) {
	m.recoveries.WithLabelValues(class, cause, action).Inc()
}

// CountExecution counts the end of an execution in the host's metrics, by its class and
// its outcome. A blank in the outcome becomes an underscore. Job types call it, from any
// goroutine.
func (d *Driver) CountExecution(outcome string) {
	outcome = strings.ReplaceAll(outcome, " ", "_") // no allocation without a blank
	d.state.act.host.metrics.executions.WithLabelValues(d.state.act.object.ID.Class, outcome).Inc()
}

// CountRepeat counts an execution that repeats a history of so many entries, in the host's metrics.
// Job types call it, from any goroutine.
func (d *Driver) CountRepeat(entries int) {
	m, class := d.state.act.host.metrics, d.state.act.object.ID.Class
	m.repeats.WithLabelValues(class).Inc()
	m.repeated.WithLabelValues(class).Add(float64(entries))
}

// Collector returns the host's metrics for a Prometheus registry.
func (h *Host) Collector() prometheus.Collector { return h.metrics }

// Describe sends nothing, because the set of metrics depends on the classes. Prometheus
// then checks the metrics of each Collect.
func (m *metrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends the present values. A registry calls it on a goroutine of its own, and may
// do so at the same time for two scrapes. It takes the mutex of each object in memory for
// an instant.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	h := m.host
	for _, c := range []prometheus.Collector{m.commit, m.gate, m.lag, m.recoveries, m.executions, m.repeats, m.repeated, m.stale, m.taskWait, m.taskRun} {
		c.Collect(out)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, name := range h.names {
		m.collectClass(out, h.hosted[name])
		m.collectTasks(out, h.hosted[name])
	}
	up := 1.0
	if h.Err() != nil {
		up = 0
	}
	gauge(descUp, up)
	gauge(descOpened, float64(m.opened.UnixMilli())/1e3)
	m.collectDisk(out)
	gauge(descBusy, float64(h.lifecycle.running()))
	under, messages, paused := h.mail.boxes.Sum()
	gauge(descMessUnder, float64(under))
	gauge(descMessWait, float64(messages))
	gauge(descMessPaused, float64(paused))
	if h.mail.known.Load() {
		gauge(descMessStored, float64(h.mail.stored.Load()))
	}
	stats := h.alarms.Stats()
	gauge(descAlarmsHeld, float64(stats.Held))
	gauge(descAlarmsOut, float64(stats.InFlight))
}

// collectDisk sends the times of syncs and the free space of the disk. It asks for the free space, but not while a
// sync hangs, because the file system of a disk that does not answer may not answer either, and a
// scrape that waits for it would tell nothing at all.
func (m *metrics) collectDisk(out chan<- prometheus.Metric) {
	store := m.host.store
	gauge := func(d *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	gauge(descUnsynced, float64(store.Pending()))
	times := store.SyncTimes()
	within := make(map[float64]uint64, len(times.Bounds))
	for i, bound := range times.Bounds {
		within[bound.Seconds()] = times.Within[i]
	}
	out <- prometheus.MustNewConstHistogram(descSync, times.Count, times.Sum.Seconds(), within)
	var underWay time.Duration
	if began := store.Syncing(); !began.IsZero() {
		underWay = max(0, m.host.seams.Clock.Now().Sub(began))
	}
	gauge(descSyncing, underWay.Seconds())
	if underWay > hungSync {
		return
	}
	if free, floor, watched := store.FreeSpace(); watched {
		gauge(descFree, float64(free))
		gauge(descFloor, float64(floor))
	}
}

// hungSync is how long a sync takes at most on a disk that answers.
const hungSync = 5 * time.Second

// collectClass sends the counters and gauges of one class. The two of permits are sent
// only for a class with a WorkLimit.
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
	count(descMessages, &c.counts.delivered, c.name, "delivered")
	count(descMessages, &c.counts.resent, c.name, "retried")
	count(descMessages, &c.counts.buried, c.name, "dead")

	waiting, age := c.waiting()
	out <- prometheus.MustNewConstMetric(descLive, prometheus.GaugeValue, float64(liveIn(c).Size()), c.name)
	out <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, float64(waiting), c.name)
	out <- prometheus.MustNewConstMetric(descWaitingAge, prometheus.GaugeValue, age, c.name)
	if counts, complete := m.host.Labels(c.name); complete {
		for label, n := range counts {
			out <- prometheus.MustNewConstMetric(descLabelled, prometheus.GaugeValue, float64(n), c.name, label)
		}
	}
	if c.permits != nil {
		taken, waiting := c.permits.count()
		out <- prometheus.MustNewConstMetric(descPermitted, prometheus.GaugeValue, float64(taken), c.name)
		out <- prometheus.MustNewConstMetric(descPermitWait, prometheus.GaugeValue, float64(waiting), c.name)
	}
}

// waiting counts the calls in the mailboxes of a class, and returns how long the oldest
// has waited, in seconds. It takes a.mu of one activation at a time.
func (c *hosted) waiting() (calls int, age float64) {
	now := c.host.seams.Clock.Now()
	liveIn(c).Range(func(_ string, a *activation) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		calls += int(a.queued)
		if a.head != nil && !a.head.queuedAt.IsZero() {
			age = max(age, now.Sub(a.head.queuedAt).Seconds())
		}
		return true
	})
	return calls, age
}

var (
	descTasksPending = describe(metric.TasksPending)
	descTasksRunning = describe(metric.TasksRunning)
	descTasksDead    = describe(metric.TasksDead)
	descTasksAge     = describe(metric.TasksReadyAge)
)

// Backlog holds the tasks of one object as the host's metrics show them. Call Set only in
// turns of the object. The other methods may be called from any goroutine, and all of them
// while the metrics are collected, because the counts are atomic.
type Backlog struct {
	class     *hosted
	name      string    // of the object
	shown     bool      // it is among those of the class; only turns use this field
	canceller canceller // calls leave when the instance goes

	pending, running, dead atomic.Uint64
	since                  atomic.Int64 // Tasks.ReadySince in nanoseconds, 0: none

	waits, runs prometheus.Observer
}

// Tasks counts the tasks of an object at the end of a turn, as Backlog.Set takes them.
type Tasks struct {
	Pending, Running, Dead uint64
	// ReadySince is when the first task of any queue became ready, or the time at
	// which one will, in nanoseconds since 1970; 0: there is no such task.
	ReadySince int64
}

// Backlog returns the place in the host's metrics for the tasks of this object. The metrics
// show them from the first Set on. A job type calls it once, in its constructor. The values
// stay in the metrics when the object is evicted, because an evicted object still has its
// tasks, and its next instance sets them again. They go when the instance is reset or the
// object is deleted.
func (d *Driver) Backlog() *Backlog {
	c := d.state.act.hosted
	m := c.host.metrics
	b := &Backlog{
		class: c, name: d.state.act.object.ID.Name,
		waits: m.taskWait.WithLabelValues(c.name), runs: m.taskRun.WithLabelValues(c.name),
	}
	d.state.onEnd(&b.canceller, b.leave)
	return b
}

// Set puts t into the metrics. It reads no clock, and allocates nothing after the first
// time. Call it in a turn.
func (b *Backlog) Set(t Tasks) {
	b.pending.Store(t.Pending)
	b.running.Store(t.Running)
	b.dead.Store(t.Dead)
	b.since.Store(t.ReadySince)
	if !b.shown {
		b.shown = true
		b.class.backlogs.put(b)
	}
}

// Waited counts a task that begins. d is how long it was ready before; a negative d, from
// a clock that was put back, counts as 0.
func (b *Backlog) Waited(d time.Duration) { b.waits.Observe(max(0, d).Seconds()) }

// Ran counts an attempt at a task that ends. d is how long it took; a negative d counts
// as 0.
func (b *Backlog) Ran(d time.Duration) { b.runs.Observe(max(0, d).Seconds()) }

// leave takes b out of the metrics when its instance goes, unless that was an eviction.
func (b *Backlog) leave(cause error) {
	if !errors.Is(cause, errEvicted) {
		b.class.backlogs.remove(b)
	}
}

// backlogs holds the Backlogs of a class by the names of its objects. The mutex guards the
// map: turns and ends of instances change it, and Collect reads it.
type backlogs struct {
	mu  sync.Mutex
	all map[string]*Backlog
}

// put adds b, in place of the Backlog of an earlier instance.
func (bs *backlogs) put(b *Backlog) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if bs.all == nil {
		bs.all = make(map[string]*Backlog)
	}
	bs.all[b.name] = b
}

// remove takes b out, unless a later instance has put its own in place.
func (bs *backlogs) remove(b *Backlog) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if bs.all[b.name] == b {
		delete(bs.all, b.name)
	}
}

// forget takes out the Backlog that an evicted object has left. Host.Delete calls it.
func (bs *backlogs) forget(name string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	delete(bs.all, name)
}

// sum adds up the tasks of the class; ReadySince is the earliest one. any reports whether
// any object has set its tasks.
func (bs *backlogs) sum() (t Tasks, any bool) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	for _, b := range bs.all {
		t.Pending += b.pending.Load()
		t.Running += b.running.Load()
		t.Dead += b.dead.Load()
		if since := b.since.Load(); since != 0 && (t.ReadySince == 0 || since < t.ReadySince) {
			t.ReadySince = since
		}
	}
	return t, len(bs.all) > 0
}

// collectTasks sends the sums of a class, if any of its objects has set its tasks.
func (m *metrics) collectTasks(out chan<- prometheus.Metric, c *hosted) {
	t, any := c.backlogs.sum()
	if !any {
		return
	}
	gauge := func(d *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, c.name)
	}
	gauge(descTasksPending, float64(t.Pending))
	gauge(descTasksRunning, float64(t.Running))
	gauge(descTasksDead, float64(t.Dead))
	gauge(descTasksAge, t.readyAge(c.host.seams.Clock.Now()).Seconds())
}

// readyAge is how long the first ready task has waited at now; 0 if none is ready.
func (t *Tasks) readyAge(now time.Time) time.Duration {
	if t.ReadySince == 0 {
		return 0
	}
	return max(0, now.Sub(time.Unix(0, t.ReadySince)))
}

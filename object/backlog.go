package object

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	descTasksPending = describe("tasks_pending", "Tasks that have not begun, or wait for another attempt.", "class")
	descTasksRunning = describe("tasks_running", "Tasks that run.", "class")
	descTasksDead    = describe("tasks_dead", "Tasks that are dead letters.", "class")
	descTasksAge     = describe("tasks_ready_age_seconds", "How long the next task of any queue has been ready.", "class")
)

// Backlog is what the host's metrics show of the tasks of one object. Set is called
// in turns of the object; all methods may be called while the metrics are collected.
type Backlog struct {
	class *hosted
	name  string
	shown bool   // it is among those of the class; turns use it
	end   ending // takes it out when the activation ends

	pending, running, dead atomic.Uint64
	since                  atomic.Int64 // Tasks.ReadySince in nanoseconds, 0: none

	waits, runs prometheus.Observer
}

// Tasks are the tasks of an object at the end of a turn.
type Tasks struct {
	Pending, Running, Dead uint64
	// ReadySince is when the first task of any queue became ready, or the time at
	// which one will, in nanoseconds since 1970; 0: there is no such task.
	ReadySince int64
}

// Backlog returns what the metrics are to show of the object's tasks, from the first
// Set on. It is for authors of job types, who call it once in the constructor. What was
// set stays when the object is evicted, since it changes only in a later activation,
// which sets it again. It goes when the activation fails or the object is deleted.
func (s *State) Backlog() *Backlog {
	c := s.act.hosted
	m := c.host.metrics
	b := &Backlog{
		class: c, name: s.act.id.Name,
		waits: m.taskWait.WithLabelValues(c.name), runs: m.taskRun.WithLabelValues(c.name),
	}
	s.onEnd(&b.end, b.leave)
	return b
}

// Set shows t. It reads no clock, and allocates nothing after the first time.
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

// Waited counts a task that begins, by how long it was ready before.
func (b *Backlog) Waited(d time.Duration) { b.waits.Observe(max(0, d).Seconds()) }

// Ran counts an attempt at a task that ends, by how long it took.
func (b *Backlog) Ran(d time.Duration) { b.runs.Observe(max(0, d).Seconds()) }

// leave takes b out of the metrics, unless its object was evicted.
func (b *Backlog) leave(cause error) {
	if !errors.Is(cause, errEvicted) {
		b.class.backlogs.remove(b)
	}
}

// backlogs are those of a class by the names of its objects.
type backlogs struct {
	mu  sync.Mutex
	all map[string]*Backlog
}

// put shows b, in place of that of an earlier activation.
func (bs *backlogs) put(b *Backlog) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if bs.all == nil {
		bs.all = make(map[string]*Backlog)
	}
	bs.all[b.name] = b
}

// remove takes b out, if it was not replaced.
func (bs *backlogs) remove(b *Backlog) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if bs.all[b.name] == b {
		delete(bs.all, b.name)
	}
}

// forget takes out what was left by an evicted object.
func (bs *backlogs) forget(name string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	delete(bs.all, name)
}

// sum adds up the tasks of the class; ReadySince is the earliest.
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

// collectTasks sends the sums of a class that has tasks.
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

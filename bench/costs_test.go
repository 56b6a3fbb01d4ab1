package bench

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// cost is one operation and its greatest costs. These figures do not depend on the speed
// of the machine, nor on the garbage collector, which rests meanwhile. Limits stand a tenth
// above the measured values. A cost above its limit is a loss to look at; a limit far above
// the cost should be lowered.
type cost struct {
	name string
	most measure.Costs
	run  func(t *testing.T) (measure.Costs, error)
}

var costs = []cost{
	{"a call that reads memory", measure.Costs{"allocs": 1.1, "bytes": 53, "commits": 0, "log bytes": 0}, func(t *testing.T) (measure.Costs, error) {
		c := counters(t)
		return per(c.Meters(), 1, 500_000, c.Read)
	}},
	{"a durable increment, 64 callers", measure.Costs{"allocs": 1.15, "bytes": 61, "commits": 1.01, "log bytes": 62}, func(t *testing.T) (measure.Costs, error) {
		c := counters(t)
		return per(c.Meters(), 64, 20_000, c.Increment)
	}},
	{"a durable increment with an idempotency key, 64 callers", measure.Costs{"allocs": 3.3, "bytes": 110, "commits": 1.01, "log bytes": 117}, func(t *testing.T) (measure.Costs, error) {
		c := counters(t)
		return per(c.Meters(), 64, 20_000, c.IncrementOnce)
	}},
	{"a durable increment over HTTP, 64 connections", measure.Costs{"allocs": 44, "bytes": 4300, "commits": 1.01, "log bytes": 62}, func(t *testing.T) (measure.Costs, error) {
		return request(t, webs["P31"])
	}},
	{"a durable increment over HTTP with a token and a key, 64 connections", measure.Costs{"allocs": 53, "bytes": 4900, "commits": 1.01}, func(t *testing.T) (measure.Costs, error) {
		return request(t, webs["P34"])
	}},
	{"a cold activation", measure.Costs{"allocs": 12.1, "bytes": 725, "commits": 0, "log bytes": 0}, func(t *testing.T) (measure.Costs, error) {
		i, err := workload.OpenIdle(t.TempDir(), 2000, 64, time.Hour)
		if err != nil {
			return nil, err
		}
		closing(t, i.Close)
		if err := i.Create(t.Context()); err != nil {
			return nil, err
		}
		return per(i.Meters(), 1, 20_000, i.Poke)
	}},
	{"an alarm that is due, of 16 full flights", measure.Costs{"allocs": 1.4, "bytes": 810, "commits": 1.012, "log bytes": 125}, func(t *testing.T) (measure.Costs, error) {
		const n = 16 * workload.Flight
		clock := &workload.Ahead{}
		a, err := workload.OpenAlarms(t.TempDir(), object.Options{
			AlarmsInFlight: n, IdleAfter: 1000 * time.Hour, Seams: seam.Seams{Clock: clock},
		})
		if err != nil {
			return nil, err
		}
		closing(t, a.Close)
		if _, err := a.DrainFlights(context.Background(), clock, n, 3); err != nil {
			return nil, err
		}
		return a.DrainFlights(context.Background(), clock, n, 10)
	}},
	{"a timer moved beside 1,000 others, 64 callers", measure.Costs{"allocs": 5.4, "bytes": 218, "commits": 1.01, "log bytes": 196}, func(t *testing.T) (measure.Costs, error) {
		m := clock(t)
		return per(m.Meters(), 64, 20_000, m.Move)
	}},
	{"a timer set and cancelled beside 1,000 others, 64 callers", measure.Costs{"allocs": 9.4, "bytes": 340, "commits": 2.02, "log bytes": 268}, func(t *testing.T) (measure.Costs, error) {
		m := clock(t)
		return per(m.Meters(), 64, 20_000, m.SetCancel)
	}},
	{"a turn that sends a message, 64 callers", measure.Costs{"allocs": 5.5, "bytes": 1020, "commits": 1.01, "log bytes": 114}, func(t *testing.T) (measure.Costs, error) {
		m := messages(t)
		if err := m.Fill(100); err != nil { // so that the others wait on disk
			return nil, err
		}
		return per(m.Meters(), 64, 20_000, m.Send)
	}},
	{"a turn that sends a message with a delay, 64 callers", measure.Costs{"allocs": 6.1, "bytes": 1035, "commits": 1.01, "log bytes": 198}, func(t *testing.T) (measure.Costs, error) {
		m := messages(t)
		return per(m.Meters(), 64, 20_000, m.SendLater)
	}},
	{"a message from turn to turn, with a look at the receiver, 64 callers", measure.Costs{"allocs": 15.7, "bytes": 2095, "commits": 2.02, "log bytes": 245}, func(t *testing.T) (measure.Costs, error) {
		m := messages(t)
		return per(m.Meters(), 64, 20_000, m.Pass)
	}},
	{"a task of a pool, enqueue to done", measure.Costs{"allocs": 15.1, "bytes": 2000, "commits": 1.06, "log bytes": 395}, func(t *testing.T) (measure.Costs, error) {
		p, err := workload.OpenPool(t.TempDir(), workerpool.AtOnce)
		if err != nil {
			return nil, err
		}
		closing(t, p.Close)
		return after(p.Meters(), 20_000, func(_, n int) error { return p.Run(context.Background(), n, nil) })
	}},
	{"a task of a pool with one phase, enqueue to done", measure.Costs{"allocs": 95, "bytes": 9850, "commits": 3.06, "log bytes": 1660}, func(t *testing.T) (measure.Costs, error) {
		p, err := workload.OpenPhases(t.TempDir(), workerpool.AtOnce)
		if err != nil {
			return nil, err
		}
		closing(t, p.Close)
		return after(p.Meters(), 10_000, func(_, n int) error { return p.Run(context.Background(), n, nil) })
	}},
	{"an event with an id for a debounce", measure.Costs{"allocs": 9.9, "bytes": 286, "commits": 1.01, "log bytes": 206}, func(t *testing.T) (measure.Costs, error) {
		d, err := workload.OpenDebounce(t.TempDir(), 1000)
		if err != nil {
			return nil, err
		}
		closing(t, d.Close)
		return per(d.Meters(), 64, 20_000, d.Add)
	}},
	{"a run of a continuous job", measure.Costs{"allocs": 52, "bytes": 6050, "commits": 1.1, "log bytes": 1560}, func(t *testing.T) (measure.Costs, error) {
		r, err := workload.OpenRuns(t.Context(), t.TempDir())
		if err != nil {
			return nil, err
		}
		closing(t, r.Close)
		return after(r.Meters(), 2000, func(_, n int) error { return r.Times(context.Background(), n) })
	}},
	{"an event of a journal, 64 callers", measure.Costs{"allocs": 5.3, "bytes": 355, "commits": 1.01, "log bytes": 105}, func(t *testing.T) (measure.Costs, error) {
		j := journals(t, 100, 1000)
		return per(j.Meters(), 64, 20_000, j.Append)
	}},
	{"an activation of a journal with 99 events", measure.Costs{"allocs": 535, "bytes": 25_000, "commits": 0, "log bytes": 0}, func(t *testing.T) (measure.Costs, error) {
		j := journals(t, 200, 16)
		if err := j.Fill(t.Context(), 99); err != nil {
			return nil, err
		}
		return per(j.Meters(), 1, 2000, j.Read)
	}},
	{"a call through a closed breaker", measure.Costs{"allocs": 4.4, "bytes": 180, "commits": 0, "log bytes": 0}, func(t *testing.T) (measure.Costs, error) {
		g, err := workload.OpenGuarded(t.TempDir())
		if err != nil {
			return nil, err
		}
		closing(t, g.Close)
		return per(g.Meters(), 1, 20_000, g.Do)
	}},
	{"a step of a workflow", measure.Costs{"allocs": 9.9, "bytes": 1350, "commits": 1.01, "log bytes": 122}, func(t *testing.T) (measure.Costs, error) {
		s := steps(t)
		return after(s.Meters(), 10_000, func(_, n int) error { return s.Run(n) })
	}},
	{"a branch of a workflow with one step, Go to Wait", measure.Costs{"allocs": 37.3, "bytes": 4150, "commits": 2.02, "log bytes": 318, "syncs": 2.02}, func(t *testing.T) (measure.Costs, error) {
		b := branches(t)
		return after(b.Meters(), 1000, func(_, n int) error { return b.Run(n, false) })
	}},
	{"a First of two branches, one with a step", measure.Costs{"allocs": 86, "bytes": 8500, "commits": 3.5, "log bytes": 578, "syncs": 3.4}, func(t *testing.T) (measure.Costs, error) {
		b := branches(t)
		return after(b.Meters(), 1000, func(_, n int) error { return b.Run(n, true) })
	}},
	{"a workflow of three steps, start to result, 64 at a time", measure.Costs{"allocs": 156, "bytes": 17900, "commits": 4.02, "log bytes": 2330}, func(t *testing.T) (measure.Costs, error) {
		s := steps(t)
		return per(s.Meters(), 64, 5000, func(int) error { return s.Run(3) })
	}},
}

// The costs of an operation in memory, commits and bytes of the log stay within their
// limits. Bytes are checked with cgo alone: without it Pebble takes its memtables and its blocks
// from the heap of Go, where they count.
func TestCosts(t *testing.T) {
	if !withCgo {
		t.Log("NOT CHECKED: bytes, because this is built without cgo")
	}
	for _, c := range costs {
		t.Run(c.name, func(t *testing.T) {
			collectNothing(t)
			got, err := c.run(t)
			if err != nil {
				t.Fatal(err)
			}
			line := ""
			for _, name := range slices.Sorted(maps.Keys(c.most)) {
				if name == "bytes" && !withCgo {
					continue
				}
				line += fmt.Sprintf("%s %.2f of %.2f  ", name, got[name], c.most[name])
				if got[name] > c.most[name] {
					t.Errorf("costs %.3f %s, at most %.3f are allowed", got[name], name, c.most[name])
				}
			}
			t.Log(line)
		})
	}
}

// collectNothing keeps the garbage collector from running until the test ends, because each
// collection empties the pools of buffers, and the next operations fill them again: how many
// collections there are depends on the heap and on other load, and not on the operations.
func collectNothing(t *testing.T) {
	t.Helper()
	runtime.GC() // the garbage of the test before
	before := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(before) })
}

func counters(t *testing.T) *workload.Counters {
	t.Helper()
	c, err := workload.OpenCounters(t.TempDir(), 100, object.Options{MaxLive: 200_000, IdleAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, c.Close)
	if err := c.Wake(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c
}

// request is the cost of a request over HTTP, its client included.
func request(t *testing.T, o workload.WebOptions) (measure.Costs, error) {
	c := counters(t)
	w, err := c.Serve(o, t.TempDir())
	if err != nil {
		return nil, err
	}
	closing(t, w.Close)
	return per(c.Meters(), o.Connections, 20_000, w.Send)
}

func clock(t *testing.T) *workload.Timers {
	t.Helper()
	m, err := workload.OpenTimers(t.TempDir(), object.Options{MaxLive: 200_000, IdleAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, m.Close)
	if err := m.Fill(1000); err != nil {
		t.Fatal(err)
	}
	return m
}

func messages(t *testing.T) *workload.Messages {
	t.Helper()
	m, err := workload.OpenMessages(t.TempDir(), 100, object.Options{MaxLive: 200_000, IdleAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, m.Close)
	return m
}

func journals(t *testing.T, objects, live int) *workload.Journals {
	j, err := workload.OpenJournals(t.TempDir(), objects, live)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, j.Close)
	return j
}

func steps(t *testing.T) *workload.Steps {
	t.Helper()
	s, err := workload.OpenSteps(t.TempDir(), 1024, object.Options{MaxLive: 200_000, IdleAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, s.Close)
	return s
}

func branches(t *testing.T) *workload.Branches {
	t.Helper()
	b, err := workload.OpenBranches(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	closing(t, b.Close)
	return b
}

func closing(t *testing.T, close func() error) {
	t.Cleanup(func() {
		if err := close(); err != nil {
			t.Error(err)
		}
	})
}

// per is the cost of each of n calls of op, after others that fill the pools of buffers.
func per(meters measure.Meters, callers, n int, op func(i int) error) (measure.Costs, error) {
	return after(meters, n, func(first, n int) error {
		return measure.Each(context.Background(), callers, n, func(i int) error { return op(first + i) })
	})
}

// after is the cost of each of n operations that run makes, after a quarter as many that fill
// the pools of buffers. run is told the number of the first and how many to make.
func after(meters measure.Meters, n int, run func(first, n int) error) (measure.Costs, error) {
	if err := run(n, n/4); err != nil {
		return nil, err
	}
	m := measure.Start(meters)
	err := run(0, n)
	return m.PerOp(int64(n)), err
}

package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// cost is one operation and its greatest costs. These figures do not depend on the speed
// of the machine. Limits stand a tenth above the measured values. A cost above its limit
// is a loss to look at; a limit far above the cost should be lowered.
type cost struct {
	name string
	most measure.Costs
	run  func(t *testing.T) (measure.Costs, error)
}

var costs = []cost{
	{"a call that reads memory", measure.Costs{"allocs": 1.1, "bytes": 56, "commits": 0, "log bytes": 0}, func(t *testing.T) (measure.Costs, error) {
		c := counters(t)
		return per(c.Meters(), 1, 500_000, c.Read)
	}},
	{"a durable increment, 64 callers", measure.Costs{"allocs": 1.45, "bytes": 140, "commits": 1.01, "log bytes": 62}, func(t *testing.T) (measure.Costs, error) {
		c := counters(t)
		return per(c.Meters(), 64, 20_000, c.Increment)
	}},
	{"a durable increment with an idempotency key, 64 callers", measure.Costs{"allocs": 3.7, "bytes": 190, "commits": 1.01, "log bytes": 117}, func(t *testing.T) (measure.Costs, error) {
		c := counters(t)
		return per(c.Meters(), 64, 20_000, c.IncrementOnce)
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
	{"an alarm that is due, of 16 full flights", measure.Costs{"allocs": 1.4, "bytes": 825, "commits": 1.012, "log bytes": 125}, func(t *testing.T) (measure.Costs, error) {
		const n = 16 * workload.Flight
		clock := &workload.Ahead{}
		a, err := workload.OpenAlarms(t.TempDir(), object.Options{
			AlarmsInFlight: n, IdleAfter: 1000 * time.Hour, Seams: seam.Seams{Clock: clock},
		})
		if err != nil {
			return nil, err
		}
		closing(t, a.Close)
		return a.DrainFlights(context.Background(), clock, n, 10)
	}},
	{"a timer moved beside 1,000 others, 64 callers", measure.Costs{"allocs": 5.4, "bytes": 265, "commits": 1.01, "log bytes": 196}, func(t *testing.T) (measure.Costs, error) {
		m := clock(t)
		return per(m.Meters(), 64, 20_000, m.Move)
	}},
	{"a timer set and cancelled beside 1,000 others, 64 callers", measure.Costs{"allocs": 9.4, "bytes": 350, "commits": 2.02, "log bytes": 268}, func(t *testing.T) (measure.Costs, error) {
		m := clock(t)
		return per(m.Meters(), 64, 20_000, m.SetCancel)
	}},
	{"a turn that sends a message, 64 callers", measure.Costs{"allocs": 5.7, "bytes": 1040, "commits": 1.01, "log bytes": 114}, func(t *testing.T) (measure.Costs, error) {
		m := messages(t)
		if err := m.Fill(100); err != nil { // so that the others wait on disk
			return nil, err
		}
		return per(m.Meters(), 64, 20_000, m.Send)
	}},
	{"a message from turn to turn, with a look at the receiver, 64 callers", measure.Costs{"allocs": 15.9, "bytes": 2130, "commits": 2.02, "log bytes": 245}, func(t *testing.T) (measure.Costs, error) {
		m := messages(t)
		return per(m.Meters(), 64, 20_000, m.Pass)
	}},
	{"a task of a pool, enqueue to done", measure.Costs{"allocs": 15.5, "bytes": 2050, "commits": 1.06, "log bytes": 395}, func(t *testing.T) (measure.Costs, error) {
		p, err := workload.OpenPool(t.TempDir(), -1)
		if err != nil {
			return nil, err
		}
		closing(t, p.Close)
		const n = 20_000
		m := measure.Start(p.Meters())
		err = p.Run(context.Background(), n, nil)
		return m.PerOp(n), err
	}},
	{"an event with an id for a debounce", measure.Costs{"allocs": 11.9, "bytes": 565, "commits": 1.01, "log bytes": 234}, func(t *testing.T) (measure.Costs, error) {
		d, err := workload.OpenDebounce(t.TempDir(), 1000)
		if err != nil {
			return nil, err
		}
		closing(t, d.Close)
		return per(d.Meters(), 64, 20_000, d.Add)
	}},
	{"a run of a continuous job", measure.Costs{"allocs": 57, "bytes": 6050, "commits": 1.1, "log bytes": 1560}, func(t *testing.T) (measure.Costs, error) {
		r, err := workload.OpenRuns(t.Context(), t.TempDir())
		if err != nil {
			return nil, err
		}
		closing(t, r.Close)
		const n = 2000
		m := measure.Start(r.Meters())
		err = r.Times(context.Background(), n)
		return m.PerOp(n), err
	}},
	{"an event of a journal, 64 callers", measure.Costs{"allocs": 5.8, "bytes": 405, "commits": 1.01, "log bytes": 105}, func(t *testing.T) (measure.Costs, error) {
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
	{"a call through a closed breaker", measure.Costs{"allocs": 4.6, "bytes": 205, "commits": 0, "log bytes": 0}, func(t *testing.T) (measure.Costs, error) {
		g, err := workload.OpenGuarded(t.TempDir())
		if err != nil {
			return nil, err
		}
		closing(t, g.Close)
		return per(g.Meters(), 1, 20_000, g.Do)
	}},
	{"a step of a workflow", measure.Costs{"allocs": 10, "bytes": 1420, "commits": 1.01, "log bytes": 122}, func(t *testing.T) (measure.Costs, error) {
		s := steps(t)
		const n = 10_000
		m := measure.Start(s.Meters())
		err := s.Run(n)
		return m.PerOp(n), err
	}},
	{"a workflow of three steps, start to result, 64 at a time", measure.Costs{"allocs": 158, "bytes": 18000, "commits": 4.02, "log bytes": 2330}, func(t *testing.T) (measure.Costs, error) {
		s := steps(t)
		return per(s.Meters(), 64, 5000, func(int) error { return s.Run(3) })
	}},
}

// The costs of an operation in memory, commits and bytes of the log stay within their
// limits.
func TestCosts(t *testing.T) {
	for _, c := range costs {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.run(t)
			if err != nil {
				t.Fatal(err)
			}
			line := ""
			for _, name := range slices.Sorted(maps.Keys(c.most)) {
				line += fmt.Sprintf("%s %.2f of %.2f  ", name, got[name], c.most[name])
				if got[name] > c.most[name] {
					t.Errorf("costs %.3f %s, at most %.3f are allowed", got[name], name, c.most[name])
				}
			}
			t.Log(line)
		})
	}
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

func closing(t *testing.T, close func() error) {
	t.Cleanup(func() {
		if err := close(); err != nil {
			t.Error(err)
		}
	})
}

// per is the cost of each of n calls of op.
func per(meters measure.Meters, callers, n int, op func(i int) error) (measure.Costs, error) {
	m := measure.Start(meters)
	err := measure.Each(context.Background(), callers, n, op)
	return m.PerOp(int64(n)), err
}

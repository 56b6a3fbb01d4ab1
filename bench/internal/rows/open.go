package rows

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
)

// p10 is opening a store with many objects and armed alarms, none of them due.
func p10(s Size) (cases []*Case) {
	for _, n := range pick(s, []int{3000}, []int{1_000_000}, []int{10_000, 1_000_000, 10_000_000}) {
		for _, crash := range []bool{false, true} {
			how, plus := "clean", 50.0
			if crash {
				how, plus = "after a crash", 100
			}
			cases = append(cases, &Case{
				ID: "P10", What: "open, " + how, Size: fmt.Sprintf("objects=%d", n), N: float64(n), Unit: "ms",
				Against: "Pebble's Open of the same files",
				Targets: []Target{times(1, plus, fmt.Sprintf("≤ reference + %.2g s", plus/1000))},
				Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
					from := fail.Must(c.openable(ctx, n, crash))
					return openHost(c.Env, from), openRaw(c.Env, from)
				}),
			})
		}
	}
	return cases
}

// openable is a store with n counters and alarms, after a crash or an orderly close.
func (e *Env) openable(ctx context.Context, n int, crash bool) (string, error) {
	clean, err := e.Made(fmt.Sprint("counters ", n), func(dir string) error {
		return workload.Make(ctx, dir, workload.Fill{
			Class: workload.CounterClass, Objects: n, Value: workload.Number8(1), First: time.Now().Add(24 * time.Hour), Step: time.Microsecond,
		})
	})
	if err != nil || !crash {
		return clean, err
	}
	return e.Made(fmt.Sprint("crashed counters ", n), func(dir string) error {
		if err := workload.Clone(clean, dir); err != nil {
			return err
		}
		return workload.Crashed(ctx, workload.Commits, dir, min(n, 300_000))
	})
}

// copied runs a side on a copy of a store.
func copied(e *Env, from string, f func(dir string, c *setup) (Sample, error)) Side {
	return fresh(e, func(_ context.Context, c *setup) (Sample, error) {
		dir := c.dir()
		fail.On(workload.Clone(from, dir))
		return f(dir, c)
	})
}

func openHost(e *Env, from string) Side {
	return copied(e, from, func(dir string, c *setup) (Sample, error) {
		meters, start := measure.Start(nil), time.Now()
		h := fail.Must(workload.OpenCounters(dir, 1, object.Options{}))
		d, costs := time.Since(start), meters.PerOp(1)
		err := keep(c, h).Read(0)
		costs["ms to first answer"] = millis(time.Since(start))
		return Sample{Value: millis(d), Costs: costs}, err
	})
}

func openRaw(e *Env, from string) Side {
	return copied(e, from, func(dir string, c *setup) (Sample, error) {
		fail.On(os.Remove(dir + "/HOLDFAST.sums"))
		meters, start := measure.Start(nil), time.Now()
		db := fail.Must(raw.Open(dir, measure.NewDisk()))
		d, costs := time.Since(start), meters.PerOp(1)
		keep(c, db)
		return Sample{Value: millis(d), Costs: costs}, nil
	})
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// p11 is an open after the death of a process with many executions open.
func p11(s Size) []*Case {
	return []*Case{killed("P11", "kill -9 with open executions: all started again after", workload.Executions, pick(s, 50, 10_000, 10_000), 1.5)}
}

// killed is an open after the death of a child of the role with n executions open.
func killed(id, what, role string, n int, seconds float64) *Case {
	return &Case{
		ID: id, What: what, Size: fmt.Sprintf("executions=%d", n), N: float64(n), Unit: "s",
		Targets: []Target{atMost(seconds, fmt.Sprintf("≤ %.3g s", seconds))},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			from := c.dir()
			fail.On(workload.Crashed(ctx, role, from, n))
			return copied(c.Env, from, func(dir string, _ *setup) (Sample, error) {
				open, all, costs, err := workload.Recovered(ctx, role, dir, n)
				if err == nil {
					costs["ms to open"] = millis(open)
				}
				return Sample{Value: all.Seconds(), Costs: costs}, err
			}), nil
		}),
	}
}

package rows

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// steps opens a host with a workflow of empty steps, and the reference with the batches of a
// run of three.
func (c *setup) steps(atOnce int) (*workload.Steps, *workload.RawRuns, *measure.Disk) {
	s := keep(c, fail.Must(workload.OpenSteps(c.dir(), atOnce, object.Options{})))
	db, disk := c.raw()
	return s, fail.Must(workload.NewRawRuns(db, 3)), disk
}

// p20 is the latency of the steps of one workflow.
func p20(s Size) []*Case {
	n := pick(s, 50, 5000, 5000)
	return []*Case{{
		ID: "P20", What: "one workflow, empty steps, p50", Unit: "µs", Against: "one synced commit, p50",
		Targets: []Target{times(1.2, 20, "≤ 1.2 × reference + 20 µs")},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			w, _, _ := c.steps(1)
			turns, disk := c.turns(1)
			return func(context.Context) (Sample, error) {
				meters := measure.Start(w.Meters())
				lat, err := w.Alone(n)
				return Sample{Value: lat.P50, Lat: &lat, Costs: meters.PerOp(int64(n))}, err
			}, median(c.For, disk.Meters(), turns.Commit)
		}),
	}}
}

// p21 is the steps of many workflows.
func p21(s Size) []*Case {
	const workflows = 64
	steps := pick(s, 10, 500, 500)
	return []*Case{{
		ID: "P21", What: fmt.Sprintf("64 workflows of %d steps", steps), Unit: "/s", Against: "synced commits of the row of such a step, 64 callers",
		Targets: []Target{ratio(0.7), cost("allocs", 10, "≤ 10 allocations"), processorTimes(2.5, "≤ 2.5 × the reference's processor time")},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			w, r, disk := c.steps(workflows)
			n := workflows * steps
			return amount(n, w.Meters(), func(ctx context.Context) error {
					return measure.Each(ctx, workflows, workflows, func(int) error { return w.Run(steps) })
				}), amount(n, disk.Meters(), func(ctx context.Context) error {
					return measure.Each(ctx, workflows, n, r.Step)
				})
		}),
	}}
}

// p22 is whole runs of three steps.
func p22(s Size) []*Case {
	const atOnce = 1024
	n := pick(s, 100, 20_000, 100_000)
	return []*Case{{
		ID: "P22", What: "workflows of 3 steps, start to result, 1,024 at a time", Size: fmt.Sprintf("workflows=%d", n), N: float64(n), Unit: "/s",
		Against: "the same 4 batches in bare Pebble",
		Targets: []Target{ratio(0.35), processor(90, "≤ 90 µs of processor time"), cost("allocs", 100, "≤ 100 allocations")},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			w, r, disk := c.steps(atOnce)
			return amount(n, w.Meters(), func(ctx context.Context) error {
					return measure.Each(ctx, atOnce, n, func(int) error { return w.Run(3) })
				}), amount(n, disk.Meters(), func(ctx context.Context) error {
					return measure.Each(ctx, atOnce, n, r.Run)
				})
		}),
	}}
}

// p23 is the space that sleeping runs take.
func p23(s Size) []*Case {
	n := pick(s, 300, 100_000, 1_000_000)
	return []*Case{{
		ID: "P23", What: "workflows asleep, disk of each, compacted", Size: fmt.Sprintf("asleep=%d", n), N: float64(n), Unit: "B", Rounds: 1,
		Targets: []Target{
			atMost(700, "≤ 700 B"), cost("goroutines of 1,000", 0, "no goroutine"),
			cost("bytes left when evicted", 16, "evicted 0 B (within 16 B)"),
		},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			return asleep(c.Env, n), nil
		}),
	}}
}

// asleep starts n runs that sleep for a day, and measures the memory and the disk that they
// take.
func asleep(e *Env, n int) Side {
	return fresh(e, func(ctx context.Context, c *setup) (Sample, error) {
		dir := c.dir()
		w := fail.Must(workload.OpenSleepers(dir, 1000))
		costs, err := asleepInMemory(ctx, w, n)
		fail.On(errors.Join(err, w.Close()))
		engine := keep(c, fail.Must(pebblestore.Open(dir, pebblestore.Options{})))
		stored, err := compact(ctx, workload.Database(engine))
		return Sample{Value: float64(stored) / float64(n), Costs: costs}, err
	})
}

// asleepInMemory starts the runs and returns the costs of each. The memory is compared
// before and after all of them were in memory once more, so that the caches which the start
// has filled are not counted.
func asleepInMemory(ctx context.Context, w *workload.Sleepers, n int) (costs measure.Costs, err error) {
	defer fail.Caught(&err)
	goroutines, meters := runtime.NumGoroutine(), measure.Start(w.Meters())
	fail.On(w.Start(ctx, n, time.Now().Add(24*time.Hour)))
	costs = meters.PerOp(int64(n))
	fail.On(w.Wake(ctx))
	before := measure.HeapBytes()
	fail.On(w.Wake(ctx))
	left, more := measure.HeapBytes()-before, runtime.NumGoroutine()-goroutines
	costs["goroutines of 1,000"], costs["bytes left when evicted"] = float64(1000*max(more, 0)/n), left/float64(n)
	return costs, nil
}

// sleepersDue opens a new host for each round, with sleeping runs that are due at once.
func sleepersDue(e *Env, n int) Side {
	return fresh(e, func(ctx context.Context, c *setup) (Sample, error) {
		d, costs, err := keep(c, fail.Must(workload.OpenSleepers(c.dir(), n))).Due(ctx, n)
		return Sample{Value: d.Seconds(), Costs: costs}, err
	})
}

// p23Due is many sleeping runs that are due at once.
func p23Due(s Size) []*Case {
	n := pick(s, 100, 10_000, 10_000)
	return []*Case{{
		ID: "P23", What: "workflows asleep due at once, until the next step of all is stored", Size: fmt.Sprintf("due=%d", n), N: float64(n), Unit: "s",
		Against: "P7: as many alarms due at once",
		Targets: []Target{times(12, 0, "≤ 12 × reference")},
		Prepare: prepared(func(_ context.Context, c *setup) (ours, reference Side) {
			return sleepersDue(c.Env, n), drain(c.Env, n)
		}),
	}}
}

// p23Floor is p23Due beside the batches of the same runs in bare Pebble.
func p23Floor(s Size) []*Case {
	n := pick(s, 100, 10_000, 10_000)
	return []*Case{{
		ID: "P23", What: "workflows asleep due at once, beside the same batches", Size: fmt.Sprintf("due=%d", n), N: float64(n), Unit: "s",
		Against: "the same 3 batches of each in bare Pebble, 1,024 runs at a time",
		Targets: []Target{times(1/0.35, 0, "≥ 0.35 × as many as the reference")},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			db, disk := c.raw()
			r := fail.Must(workload.NewRawSleepers(ctx, db))
			return sleepersDue(c.Env, n), func(ctx context.Context) (Sample, error) {
				meters, start := measure.Start(disk.Meters()), time.Now()
				err := measure.Each(ctx, 1024, n, r.Run)
				return Sample{Value: time.Since(start).Seconds(), Costs: meters.PerOp(int64(n))}, err
			}
		}),
	}}
}

// p24 is the repeat of a history by a run that is not in memory. The reference is the wake
// of a run without one, so the difference is the history alone.
func p24(s Size) (cases []*Case) {
	for _, kind := range []struct {
		values  string
		structs bool
		micros  map[int]float64
	}{
		{"values of 100 bytes", false, map[int]float64{100: 300, 1000: 2000, 10_000: 20_000}},
		{"structs by JSON", true, map[int]float64{100: 600, 1000: 4000, 10_000: 40_000}},
	} {
		for _, n := range pick(s, []int{100}, []int{100, 1000, 10_000}, []int{100, 1000, 10_000}) {
			runs := pick(s, 3, 8+10_000/n, 8+10_000/n)
			more := kind.micros[n]
			cases = append(cases, &Case{
				ID: "P24", What: "repeat of a history, cold object, " + kind.values + ", p50", Size: fmt.Sprintf("entries=%d", n), N: float64(n), Unit: "µs",
				Against: "the same wake without a history, p50",
				Targets: []Target{times(1, more, fmt.Sprintf("≤ reference + %.3g ms", more/1e3))},
				Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
					ours = c.cold(ctx, workload.Wake{Runs: runs, Entries: n, Structs: kind.structs})
					reference = c.cold(ctx, workload.Wake{Runs: runs})
					return ours, reference
				}),
			})
		}
	}
	return cases
}

// wakes opens a host with runs that wait for signals.
func (c *setup) wakes(ctx context.Context, o workload.Wake) *workload.Wakes {
	return keep(c, fail.Must(workload.OpenWakes(ctx, c.dir(), o)))
}

// cold opens a host with runs that leave memory soon, and wakes each of them.
func (c *setup) cold(ctx context.Context, o workload.Wake) Side {
	o.IdleAfter = 50 * time.Millisecond
	w := c.wakes(ctx, o)
	return func(ctx context.Context) (Sample, error) {
		lat, costs, err := w.Cold(ctx)
		return Sample{Value: lat.P50, Lat: &lat, Costs: costs}, err
	}
}

// p25 is an open after the death of a process with many runs in a step.
func p25(s Size) []*Case {
	return []*Case{killed("P25", "kill -9 with executing workflows: all in their step again after", workload.ExecutingRuns, pick(s, 50, 10_000, 10_000), 3)}
}

// p29 is a signal to a run that waits for it on disk or in memory, not on a goroutine.
func p29(s Size) []*Case {
	return []*Case{{
		ID: "P29", What: "signal to a sleeping workflow, until its next step is stored, p50", Unit: "µs", Against: "one synced commit, p50",
		Targets: []Target{times(3, 100, "≤ 3 × reference + 100 µs")},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			ours = c.signals(ctx, s)
			turns, disk := c.turns(1)
			return ours, median(c.For, disk.Meters(), turns.Commit)
		}),
	}, {
		ID: "P29", What: "signal to a sleeping workflow, beside the same batches, p50", Unit: "µs", Against: "the same 3 batches in bare Pebble, one after another, p50",
		Targets: []Target{times(1, 100, "≤ reference + 100 µs")},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			ours = c.signals(ctx, s)
			db, disk := c.raw()
			r := fail.Must(workload.NewRawWakes(ctx, db))
			return ours, median(c.For, disk.Meters(), r.Run)
		}),
	}}
}

// signals opens a host with runs that wait for signals, and sends them.
func (c *setup) signals(ctx context.Context, s Size) Side {
	w := c.wakes(ctx, workload.Wake{Runs: pick(s, 20, hot, hot), Anew: true})
	return func(ctx context.Context) (Sample, error) {
		q, costs, err := w.Warm(ctx, c.For)
		return Sample{Value: q.P50, Lat: &q, Costs: costs}, err
	}
}

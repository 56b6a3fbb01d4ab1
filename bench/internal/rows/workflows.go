package rows

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// steps opens a host with a workflow of empty steps, and the reference with the batches of a
// run of three.
func (c *closers) steps(e *Env, atOnce int) (*workload.Steps, *workload.RawRuns, *measure.Disk, error) {
	dir, err := c.dir(e)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := workload.OpenSteps(dir, atOnce, object.Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	c.add(s.Close)
	db, disk, err := c.raw(e)
	if err != nil {
		return nil, nil, nil, err
	}
	r, err := workload.NewRawRuns(db, 3)
	return s, r, disk, err
}

// p20 is the latency of the steps of one workflow.
func p20(s Size) []*Case {
	n := pick(s, 50, 5000, 5000)
	return []*Case{{
		ID: "P20", What: "one workflow, empty steps, p50", Unit: "µs", Against: "one synced commit, p50",
		Targets: []Target{times(1.2, 20, "≤ 1.2 × reference + 20 µs")},
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			w, _, _, err := c.steps(e, 1)
			if err != nil {
				return nil, nil, err
			}
			turns, disk, err := c.turns(e, 1)
			if err != nil {
				return nil, nil, err
			}
			return func(context.Context) (Sample, error) {
				meters := measure.Start(w.Meters())
				lat, err := w.Alone(n)
				return Sample{Value: lat.P50, Lat: &lat, Costs: meters.PerOp(int64(n))}, err
			}, median(e.For, disk.Meters(), turns.Commit), nil
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
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			w, r, disk, err := c.steps(e, workflows)
			if err != nil {
				return nil, nil, err
			}
			n := workflows * steps
			return amount(n, w.Meters(), func(ctx context.Context) error {
					return measure.Each(ctx, workflows, workflows, func(int) error { return w.Run(steps) })
				}), amount(n, disk.Meters(), func(ctx context.Context) error {
					return measure.Each(ctx, workflows, n, r.Step)
				}), nil
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
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			w, r, disk, err := c.steps(e, atOnce)
			if err != nil {
				return nil, nil, err
			}
			return amount(n, w.Meters(), func(ctx context.Context) error {
					return measure.Each(ctx, atOnce, n, func(int) error { return w.Run(3) })
				}), amount(n, disk.Meters(), func(ctx context.Context) error {
					return measure.Each(ctx, atOnce, n, r.Run)
				}), nil
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
		Prepare: prepared(func(ctx context.Context, e *Env, _ *closers) (ours, reference Side, err error) {
			return func(ctx context.Context) (Sample, error) { return asleep(ctx, e, n) }, nil, nil
		}),
	}}
}

// asleep starts n runs that sleep for a day, and measures the memory and the disk that they
// take.
func asleep(ctx context.Context, e *Env, n int) (_ Sample, err error) {
	c := &closers{}
	defer func() { err = errors.Join(err, c.close()) }()
	dir, err := c.dir(e)
	if err != nil {
		return Sample{}, err
	}
	w, err := workload.OpenSleepers(dir, 1000)
	if err != nil {
		return Sample{}, err
	}
	costs, err := asleepInMemory(ctx, w, n)
	if err = errors.Join(err, w.Close()); err != nil {
		return Sample{}, err
	}
	engine, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		return Sample{}, err
	}
	c.add(engine.Close)
	stored, err := compact(ctx, workload.Database(engine))
	return Sample{Value: float64(stored) / float64(n), Costs: costs}, err
}

// asleepInMemory starts the runs and returns the costs of each. The memory is compared
// before and after all of them were in memory once more, so that the caches which the start
// has filled are not counted.
func asleepInMemory(ctx context.Context, w *workload.Sleepers, n int) (measure.Costs, error) {
	goroutines, meters := runtime.NumGoroutine(), measure.Start(w.Meters())
	if err := w.Start(ctx, n, time.Now().Add(24*time.Hour)); err != nil {
		return nil, err
	}
	costs := meters.PerOp(int64(n))
	if err := w.Wake(ctx); err != nil {
		return nil, err
	}
	before := measure.HeapBytes()
	if err := w.Wake(ctx); err != nil {
		return nil, err
	}
	left, more := measure.HeapBytes()-before, runtime.NumGoroutine()-goroutines
	costs["goroutines of 1,000"], costs["bytes left when evicted"] = float64(1000*max(more, 0)/n), left/float64(n)
	return costs, nil
}

// sleepersDue opens a new host for each round, with sleeping runs that are due at once.
func sleepersDue(e *Env, n int) Side {
	return func(ctx context.Context) (_ Sample, err error) {
		c := &closers{}
		defer func() { err = errors.Join(err, c.close()) }()
		dir, err := c.dir(e)
		if err != nil {
			return Sample{}, err
		}
		w, err := workload.OpenSleepers(dir, n)
		if err != nil {
			return Sample{}, err
		}
		c.add(w.Close)
		d, costs, err := w.Due(ctx, n)
		return Sample{Value: d.Seconds(), Costs: costs}, err
	}
}

// p23Due is many sleeping runs that are due at once.
func p23Due(s Size) []*Case {
	n := pick(s, 100, 10_000, 10_000)
	return []*Case{{
		ID: "P23", What: "workflows asleep due at once, until the next step of all is stored", Size: fmt.Sprintf("due=%d", n), N: float64(n), Unit: "s",
		Against: "P7: as many alarms due at once",
		Targets: []Target{times(12, 0, "≤ 12 × reference")},
		Prepare: prepared(func(_ context.Context, e *Env, _ *closers) (ours, reference Side, err error) {
			return sleepersDue(e, n), drain(e, n), nil
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
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			db, disk, err := c.raw(e)
			if err != nil {
				return nil, nil, err
			}
			r, err := workload.NewRawSleepers(ctx, db)
			if err != nil {
				return nil, nil, err
			}
			return sleepersDue(e, n), func(ctx context.Context) (Sample, error) {
				meters, start := measure.Start(disk.Meters()), time.Now()
				err := measure.Each(ctx, 1024, n, r.Run)
				return Sample{Value: time.Since(start).Seconds(), Costs: meters.PerOp(int64(n))}, err
			}, nil
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
				Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
					ours, err = c.cold(ctx, e, workload.Wake{Runs: runs, Entries: n, Structs: kind.structs})
					if err != nil {
						return nil, nil, err
					}
					reference, err = c.cold(ctx, e, workload.Wake{Runs: runs})
					return ours, reference, err
				}),
			})
		}
	}
	return cases
}

// wakes opens a host with runs that wait for signals.
func (c *closers) wakes(ctx context.Context, e *Env, o workload.Wake) (*workload.Wakes, error) {
	dir, err := c.dir(e)
	if err != nil {
		return nil, err
	}
	w, err := workload.OpenWakes(ctx, dir, o)
	if err == nil {
		c.add(w.Close)
	}
	return w, err
}

// cold opens a host with runs that leave memory soon, and wakes each of them.
func (c *closers) cold(ctx context.Context, e *Env, o workload.Wake) (Side, error) {
	o.IdleAfter = 50 * time.Millisecond
	w, err := c.wakes(ctx, e, o)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (Sample, error) {
		lat, costs, err := w.Cold(ctx)
		return Sample{Value: lat.P50, Lat: &lat, Costs: costs}, err
	}, nil
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
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			ours, err = c.signals(ctx, e, s)
			if err != nil {
				return nil, nil, err
			}
			turns, disk, err := c.turns(e, 1)
			if err != nil {
				return nil, nil, err
			}
			return ours, median(e.For, disk.Meters(), turns.Commit), nil
		}),
	}, {
		ID: "P29", What: "signal to a sleeping workflow, beside the same batches, p50", Unit: "µs", Against: "the same 3 batches in bare Pebble, one after another, p50",
		Targets: []Target{times(1, 100, "≤ reference + 100 µs")},
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			ours, err = c.signals(ctx, e, s)
			if err != nil {
				return nil, nil, err
			}
			db, disk, err := c.raw(e)
			if err != nil {
				return nil, nil, err
			}
			r, err := workload.NewRawWakes(ctx, db)
			if err != nil {
				return nil, nil, err
			}
			return ours, median(e.For, disk.Meters(), r.Run), nil
		}),
	}}
}

// signals opens a host with runs that wait for signals, and sends them.
func (c *closers) signals(ctx context.Context, e *Env, s Size) (Side, error) {
	w, err := c.wakes(ctx, e, workload.Wake{Runs: pick(s, 20, hot, hot), Anew: true})
	return func(ctx context.Context) (Sample, error) {
		q, costs, err := w.Warm(ctx, e.For)
		return Sample{Value: q.P50, Lat: &q, Costs: costs}, err
	}, err
}

package rows

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// p12 is a task from Enqueue to done, durable at each step.
func p12(s Size) []*Case {
	const what = "worker pool, empty task, enqueue to done, 512 producers"
	n := pick(s, 500, 60_000, 200_000)
	cases := []*Case{{
		ID: "P12", What: what, Size: "queued=0", Unit: "/s",
		Against: "the same rows in bare Pebble, begins and ends merged up to 64",
		Targets: []Target{ratio(0.5), atLeast(80_000, "≥ 80,000/s")},
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			p, err := c.pool(e, workerpool.AtOnce)
			if err != nil {
				return nil, nil, err
			}
			db, disk, err := c.raw(e)
			if err != nil {
				return nil, nil, err
			}
			r := workload.RawPool{DB: db}
			return tasks(p, n), amount(n, disk.Meters(), func(ctx context.Context) error { return r.Run(ctx, n) }), nil
		}),
	}}
	for _, queued := range pick(s, []int{2000}, []int{1_000_000}, []int{10_000, 100_000, 1_000_000}) {
		cases = append(cases, &Case{
			ID: "P12", What: what, Size: fmt.Sprintf("queued=%d", queued), N: float64(queued), Unit: "/s",
			Against: "the same with no other tasks queued",
			Targets: []Target{ratio(1 / 1.3)},
			Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
				full, err := c.pool(e, workerpool.AtOnce)
				if err != nil {
					return nil, nil, err
				}
				if err := full.Queue(ctx, queued); err != nil {
					return nil, nil, err
				}
				empty, err := c.pool(e, workerpool.AtOnce)
				if err != nil {
					return nil, nil, err
				}
				return tasks(full, n), tasks(empty, n), nil
			}),
		})
	}
	return cases
}

// pool opens a host with a worker pool.
func (c *closers) pool(e *Env, kept time.Duration) (*workload.Pool, error) {
	dir, err := c.dir(e)
	if err != nil {
		return nil, err
	}
	p, err := workload.OpenPool(dir, kept)
	if err == nil {
		c.add(p.Close)
	}
	return p, err
}

// tasks measures how many tasks a second a pool brings to their end.
func tasks(p *workload.Pool, n int) Side {
	return func(ctx context.Context) (Sample, error) {
		lat := measure.NewLatencies()
		s, err := amount(n, p.Meters(), func(ctx context.Context) error { return p.Run(ctx, n, lat) })(ctx)
		q := lat.Quantiles()
		s.Lat = &q
		return s, err
	}
}

// amount measures the rate at which a fixed amount of work is done.
func amount(n int, m measure.Meters, run func(ctx context.Context) error) Side {
	return func(ctx context.Context) (Sample, error) {
		meters := measure.Start(m)
		start := time.Now()
		err := run(ctx)
		return Sample{Value: float64(n) / time.Since(start).Seconds(), Costs: meters.PerOp(int64(n))}, err
	}
}

// p13 is the latency of one task at a time.
func p13(Size) []*Case {
	return []*Case{{
		ID: "P13", What: "worker pool, one task at a time, enqueue to done, p50", Unit: "µs", Against: "one synced commit, p50",
		Targets: []Target{times(4, 0, "≤ 4 × reference")},
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			p, err := c.pool(e, time.Minute)
			if err != nil {
				return nil, nil, err
			}
			turns, disk, err := c.turns(e, 1)
			if err != nil {
				return nil, nil, err
			}
			one := func(i int) error { return p.One(ctx, i) }
			return median(e.For, p.Meters(), one), median(e.For, disk.Meters(), turns.Commit), nil
		}),
	}}
}

// p14 is adding events to debounce objects.
func p14(s Size) (cases []*Case) {
	for _, objects := range []int{1, hot} {
		row := map[int]string{1: "P3", hot: "P4"}[objects]
		for _, n := range callers(s) {
			cases = append(cases, &Case{
				ID: "P14", What: "debounce adds with ids", Size: fmt.Sprintf("objects=%d callers=%d", objects, n), N: float64(n), Unit: "/s",
				Against: row + ": our own durable increments",
				Targets: []Target{ratio(0.6)},
				Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
					dir, err := c.dir(e)
					if err != nil {
						return nil, nil, err
					}
					d, err := workload.OpenDebounce(dir, objects)
					if err != nil {
						return nil, nil, err
					}
					c.add(d.Close)
					counts, err := c.counters(e, objects, object.Options{})
					if err != nil {
						return nil, nil, err
					}
					return rate(n, e.For, d.Meters(), d.Add), rate(n, e.For, counts.Meters(), counts.Increment), nil
				}),
			})
		}
	}
	return cases
}

// p15 is a run of a continuous job: an end batch and a begin batch.
func p15(Size) []*Case {
	return []*Case{{
		ID: "P15", What: "continuous job, begin of one run to begin of the next, p50", Unit: "µs", Against: "one synced commit, p50",
		Targets: []Target{times(2, 60, "≤ 2 × reference + 60 µs")},
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			ours, err = c.runs(ctx, e)
			if err != nil {
				return nil, nil, err
			}
			turns, disk, err := c.turns(e, 1)
			if err != nil {
				return nil, nil, err
			}
			return ours, median(e.For, disk.Meters(), turns.Commit), nil
		}),
	}}
}

// runs opens a host with a continuous job and measures its runs.
func (c *closers) runs(ctx context.Context, e *Env) (Side, error) {
	dir, err := c.dir(e)
	if err != nil {
		return nil, err
	}
	r, err := workload.OpenRuns(ctx, dir)
	if err != nil {
		return nil, err
	}
	c.add(r.Close)
	return func(ctx context.Context) (Sample, error) {
		meters := measure.Start(r.Meters())
		run, err := r.Loop(ctx, e.For)
		return Sample{Value: run.Lat.P50, Lat: &run.Lat, Costs: meters.PerOp(run.Ops)}, err
	}, nil
}

package rows

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
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
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			p := c.pool(workerpool.AtOnce)
			db, disk := c.raw()
			r := workload.RawPool{DB: db}
			return tasks(p, n), amount(n, disk.Meters(), func(ctx context.Context) error { return r.Run(ctx, n) })
		}),
	}}
	for _, queued := range pick(s, []int{2000}, []int{1_000_000}, []int{10_000, 100_000, 1_000_000}) {
		cases = append(cases, &Case{
			ID: "P12", What: what, Size: fmt.Sprintf("queued=%d", queued), N: float64(queued), Unit: "/s",
			Against: "the same with no other tasks queued",
			Targets: []Target{ratio(1 / 1.3)},
			Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
				full := c.pool(workerpool.AtOnce)
				fail.On(full.Queue(ctx, queued))
				empty := c.pool(workerpool.AtOnce)
				return tasks(full, n), tasks(empty, n)
			}),
		})
	}
	return cases
}

// pool opens a host with a worker pool.
func (c *setup) pool(kept time.Duration) *workload.Pool {
	return keep(c, fail.Must(workload.OpenPool(c.dir(), kept)))
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
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			p := c.pool(time.Minute)
			turns, disk := c.turns(1)
			one := func(i int) error { return p.One(ctx, i) }
			return median(c.For, p.Meters(), one), median(c.For, disk.Meters(), turns.Commit)
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
				Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
					d := keep(c, fail.Must(workload.OpenDebounce(c.dir(), objects)))
					counts := c.counters(objects, object.Options{})
					return rate(n, c.For, d.Meters(), d.Add), rate(n, c.For, counts.Meters(), counts.Increment)
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
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			ours = c.runs(ctx)
			turns, disk := c.turns(1)
			return ours, median(c.For, disk.Meters(), turns.Commit)
		}),
	}}
}

// runs opens a host with a continuous job and measures its runs.
func (c *setup) runs(ctx context.Context) Side {
	r := keep(c, fail.Must(workload.OpenRuns(ctx, c.dir())))
	return func(ctx context.Context) (Sample, error) {
		meters := measure.Start(r.Meters())
		run, err := r.Loop(ctx, c.For)
		return Sample{Value: run.Lat.P50, Lat: &run.Lat, Costs: meters.PerOp(run.Ops)}, err
	}
}

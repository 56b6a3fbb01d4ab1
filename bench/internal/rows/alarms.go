package rows

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
)

// p7 is alarms due at once with an empty handler: from when they are due until
// the effect of the last is durable.
func p7(s Size) (cases []*Case) {
	for _, n := range pick(s, []int{300}, []int{10_000, 100_000}, []int{1000, 10_000, 100_000}) {
		c := &Case{
			ID: "P7", What: "alarms due at once, until the last is done", Size: fmt.Sprintf("alarms=%d", n), N: float64(n), Unit: "s",
			Against: "the same reads and deletes in bare Pebble, pipelined",
			Targets: []Target{times(1/0.45, 0, "≥ 0.45 × as many as the reference")},
			Prepare: prepared(func(_ context.Context, e *Env, _ *closers) (ours, reference Side, err error) {
				return drain(e, n), drainRaw(e, n), nil
			}),
		}
		if seconds, ok := map[int]float64{10_000: 0.085, 100_000: 0.7}[n]; ok {
			text := fmt.Sprintf("≤ %.3g s", seconds)
			c.Targets = append(c.Targets, atMost(seconds, text), p99(seconds*1e6, "p99 late "+text))
		}
		cases = append(cases, c)
	}
	return cases
}

// drain opens a new host for each round.
func drain(e *Env, n int) Side {
	return func(ctx context.Context) (_ Sample, err error) {
		c := &closers{}
		defer func() { err = errors.Join(err, c.close()) }()
		dir, err := c.dir(e)
		if err != nil {
			return Sample{}, err
		}
		a, err := workload.OpenAlarms(dir, object.Options{})
		if err != nil {
			return Sample{}, err
		}
		c.add(a.Close)
		d, late, costs, err := a.Drain(ctx, n)
		return Sample{Value: d.Seconds(), Lat: &late, Costs: costs}, err
	}
}

func drainRaw(e *Env, n int) Side {
	return func(context.Context) (_ Sample, err error) {
		c := &closers{}
		defer func() { err = errors.Join(err, c.close()) }()
		db, disk, err := c.raw(e)
		if err != nil {
			return Sample{}, err
		}
		r := &workload.RawAlarms{DB: db}
		if err := r.Fill(n); err != nil {
			return Sample{}, err
		}
		meters := measure.Start(disk.Meters())
		start := time.Now()
		drained, err := r.Drain()
		d := time.Since(start)
		if err == nil && drained != n {
			err = fmt.Errorf("the reference drained %d alarms of %d", drained, n)
		}
		return Sample{Value: d.Seconds(), Costs: meters.PerOp(int64(n))}, err
	}
}

// p8 is alarms at a steady rate: how late they are.
func p8(s Size) []*Case {
	const perSecond = 10_000
	return []*Case{{
		ID: "P8", What: "alarms at a steady 10,000/s: p99 late", Unit: "ms",
		Against: "a loop that sleeps until each is due and applies its deletes",
		Targets: []Target{atMost(10, "p99 ≤ 10 ms"), p50(2000, "p50 ≤ 2 ms")},
		Prepare: prepared(func(_ context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			dir, err := c.dir(e)
			if err != nil {
				return nil, nil, err
			}
			a, err := workload.OpenAlarms(dir, object.Options{})
			if err != nil {
				return nil, nil, err
			}
			c.add(a.Close)
			db, _, err := c.raw(e)
			if err != nil {
				return nil, nil, err
			}
			n := max(int(perSecond*e.For.Seconds()), 100)
			return func(ctx context.Context) (Sample, error) {
					late, costs, err := a.Steady(ctx, n, perSecond)
					return Sample{Value: late.P99 / 1e3, Lat: &late, Costs: costs}, err
				}, func(ctx context.Context) (Sample, error) {
					late, costs, err := (&workload.RawAlarms{DB: db}).Steady(ctx, n, perSecond)
					return Sample{Value: late.P99 / 1e3, Lat: &late, Costs: costs}, err
				}, nil
		}),
	}}
}

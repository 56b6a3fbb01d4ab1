package rows

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
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
			Prepare: prepared(func(_ context.Context, c *setup) (ours, reference Side) {
				return drain(c.Env, n), drainRaw(c.Env, n)
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
	return fresh(e, func(ctx context.Context, c *setup) (Sample, error) {
		d, late, costs, err := keep(c, fail.Must(workload.OpenAlarms(c.dir(), object.Options{}))).Drain(ctx, n)
		return Sample{Value: d.Seconds(), Lat: &late, Costs: costs}, err
	})
}

func drainRaw(e *Env, n int) Side {
	return fresh(e, func(_ context.Context, c *setup) (Sample, error) {
		db, disk := c.raw()
		r := &workload.RawAlarms{DB: db}
		fail.On(r.Fill(n))
		meters := measure.Start(disk.Meters())
		start := time.Now()
		drained, err := r.Drain()
		d := time.Since(start)
		if err == nil && drained != n {
			err = fmt.Errorf("the reference drained %d alarms of %d", drained, n)
		}
		return Sample{Value: d.Seconds(), Costs: meters.PerOp(int64(n))}, err
	})
}

// p8 is alarms at a steady rate: how late they are.
func p8(s Size) []*Case {
	const perSecond = 10_000
	return []*Case{{
		ID: "P8", What: "alarms at a steady 10,000/s: p99 late", Unit: "ms",
		Against: "a loop that sleeps until each is due and applies its deletes",
		Targets: []Target{atMost(10, "p99 ≤ 10 ms"), p50(2000, "p50 ≤ 2 ms")},
		Prepare: prepared(func(_ context.Context, c *setup) (ours, reference Side) {
			a := keep(c, fail.Must(workload.OpenAlarms(c.dir(), object.Options{})))
			db, _ := c.raw()
			n := max(int(perSecond*c.For.Seconds()), 100)
			return func(ctx context.Context) (Sample, error) {
					late, costs, err := a.Steady(ctx, n, perSecond)
					return Sample{Value: late.P99 / 1e3, Lat: &late, Costs: costs}, err
				}, func(ctx context.Context) (Sample, error) {
					late, costs, err := (&workload.RawAlarms{DB: db}).Steady(ctx, n, perSecond)
					return Sample{Value: late.P99 / 1e3, Lat: &late, Costs: costs}, err
				}
		}),
	}}
}

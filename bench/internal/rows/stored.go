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

// p9 is the cost of alarms beside many stored ones: memory, setting, firing.
func p9(s Size) (cases []*Case) {
	const few = 1000
	for _, n := range pick(s, []int{3000}, []int{1_000_000}, []int{100_000, 1_000_000, 10_000_000}) {
		size, against := fmt.Sprintf("stored=%d", n), "the same with 1,000 stored"
		cases = append(cases,
			&Case{
				ID: "P9", What: "set an alarm beside stored ones, 64 callers", Size: size, N: float64(n), Unit: "/s", Against: against,
				Targets: []Target{ratio(1 / 1.3)},
				Prepare: besideStored(n, few, setFar),
			},
			&Case{
				ID: "P9", What: "fire alarms beside stored ones", Size: size, N: float64(n), Unit: "/s", Against: against,
				Targets: []Target{ratio(1 / 1.3)},
				Prepare: besideStored(n, few, fire),
			},
			&Case{
				ID: "P9", What: "heap of a host with stored alarms", Size: size, N: float64(n), Unit: "MiB", Against: against,
				Targets: []Target{atMost(32, "≤ 32 MiB"), times(1, 8, "≤ reference + 8 MiB")},
				Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
					return heldHeap(c.Env, n), heldHeap(c.Env, few)
				}),
			})
	}
	return cases
}

// stored is a store with n sleepers with alarms far away.
func (e *Env) stored(ctx context.Context, n int) (string, error) {
	return e.Made(fmt.Sprint("sleepers ", n), func(dir string) error {
		return workload.Make(ctx, dir, workload.Fill{
			Class: workload.SleeperClass, Objects: n, First: time.Now().Add(24 * time.Hour), Step: time.Microsecond,
		})
	})
}

// cloneStored copies such a store.
func (c *setup) cloneStored(ctx context.Context, n int) string {
	from := fail.Must(c.stored(ctx, n))
	dir := c.dir()
	fail.On(workload.Clone(from, dir))
	return dir
}

// openStored opens a host on a copy of such a store.
func (c *setup) openStored(ctx context.Context, n int) *workload.Alarms {
	return keep(c, fail.Must(workload.OpenAlarms(c.cloneStored(ctx, n), object.Options{})))
}

func besideStored(n, few int, side func(e *Env, a *workload.Alarms) Side) func(context.Context, *Env) (*Pair, error) {
	return prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
		return side(c.Env, c.openStored(ctx, n)), side(c.Env, c.openStored(ctx, few))
	})
}

func setFar(e *Env, a *workload.Alarms) Side {
	far := time.Now().Add(48 * time.Hour)
	return rate(64, e.For, a.Meters(), func(i int) error { return a.Set(i%1000, far.Add(time.Duration(i)*time.Microsecond)) })
}

func fire(e *Env, a *workload.Alarms) Side {
	n := pick(e.Size, 300, 20_000, 20_000)
	return func(ctx context.Context) (Sample, error) {
		d, late, costs, err := a.Drain(ctx, n)
		return Sample{Value: float64(n) / d.Seconds(), Lat: &late, Costs: costs}, err
	}
}

// heldHeap is the memory that a host adds to the heap when it has read the next alarms.
func heldHeap(e *Env, n int) Side {
	return fresh(e, func(ctx context.Context, c *setup) (Sample, error) {
		dir := c.cloneStored(ctx, n)
		before, meters := measure.HeapBytes(), measure.Start(nil)
		a := keep(c, fail.Must(workload.OpenAlarms(dir, object.Options{})))
		held := fail.Must(a.Settled(ctx))
		costs := meters.PerOp(1)
		costs["alarms held"] = held
		const mebi = 1 << 20
		return Sample{Value: (measure.HeapBytes() - before) / mebi, Costs: costs}, nil
	})
}

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
)

// p16 is the memory of a live object without calls.
func p16(s Size) []*Case {
	n := pick(s, 2000, 100_000, 100_000)
	return []*Case{{
		ID: "P16", What: "live idle object, bytes of memory", Size: fmt.Sprintf("objects=%d", n), N: float64(n), Unit: "B",
		Targets: []Target{
			atMost(350, "≤ 350 B"), cost("goroutines", 0, "no goroutine"),
			cost("bytes left when evicted", 16, "evicted 0 B (within 16 B)"),
		},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			dir := c.dir()
			took := makeIdle(ctx, dir, n)
			// The objects are to be live until they have been measured, and not much longer.
			i := keep(c, fail.Must(workload.OpenIdle(dir, n, 2*n, 3*took+pick(c.Size, 300*time.Millisecond, time.Second, time.Second))))
			return func(ctx context.Context) (Sample, error) { return idleBytes(ctx, i, n) }, nil
		}),
	}}
}

// makeIdle makes n idle objects in dir and returns how long it took, which is more
// than waking them takes.
func makeIdle(ctx context.Context, dir string, n int) time.Duration {
	i := fail.Must(workload.OpenIdle(dir, n, 2*n, time.Hour))
	start := time.Now()
	err := i.Create(ctx)
	took := time.Since(start)
	fail.On(errors.Join(err, i.Close()))
	return took
}

// idleBytes wakes all objects twice, so that the caches filled by the first time are
// not counted, and compares memory with and without them.
func idleBytes(ctx context.Context, i *workload.Idle, n int) (Sample, error) {
	if err := errors.Join(i.Wake(ctx), i.Evicted(ctx)); err != nil {
		return Sample{}, err
	}
	before, goroutines := measure.HeapBytes(), runtime.NumGoroutine()
	meters := measure.Start(nil)
	if err := i.Wake(ctx); err != nil {
		return Sample{}, err
	}
	costs := meters.PerOp(int64(n))
	live := measure.HeapBytes()
	more := runtime.NumGoroutine() - goroutines
	if i.Live() < float64(n) {
		return Sample{}, errors.New("objects were evicted before they were measured: try again when the machine is quiet")
	}
	if err := i.Evicted(ctx); err != nil {
		return Sample{}, err
	}
	left := measure.HeapBytes() - before
	costs["goroutines"], costs["bytes left when evicted"] = float64(max(more, 0)), left/float64(n)
	return Sample{Value: (live - before) / float64(n), Costs: costs}, nil
}

// p17 is the activation of an object that is not in memory while its rows are in
// the cache.
func p17(s Size) []*Case {
	n := pick(s, 500, 20_000, 20_000)
	return []*Case{{
		ID: "P17", What: "cold activation, data in cache, p50", Unit: "µs", Against: "the reads of bare Pebble that it needs, p50",
		Targets: []Target{atMost(15, "≤ 15 µs")},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			i := keep(c, fail.Must(workload.OpenIdle(c.dir(), n, 64, time.Hour)))
			fail.On(i.Create(ctx))
			db, disk := c.raw()
			r := fail.Must(workload.NewRawIdle(db, n))
			return median(c.For, i.Meters(), i.Poke), median(c.For, disk.Meters(), r.Read)
		}),
	}}
}

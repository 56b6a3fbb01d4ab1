package rows

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

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
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			dir, err := c.dir(e)
			if err != nil {
				return nil, nil, err
			}
			took, err := makeIdle(ctx, dir, n)
			if err != nil {
				return nil, nil, err
			}
			// The objects are to be live until they have been measured, and not much longer.
			i, err := workload.OpenIdle(dir, n, 2*n, 3*took+pick(e.Size, 300*time.Millisecond, time.Second, time.Second))
			if err != nil {
				return nil, nil, err
			}
			c.add(i.Close)
			return func(ctx context.Context) (Sample, error) { return idleBytes(ctx, i, n) }, nil, nil
		}),
	}}
}

// makeIdle makes n idle objects in dir and returns how long it took, which is more
// than waking them takes.
func makeIdle(ctx context.Context, dir string, n int) (time.Duration, error) {
	i, err := workload.OpenIdle(dir, n, 2*n, time.Hour)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	err = i.Create(ctx)
	return time.Since(start), errors.Join(err, i.Close())
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
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			dir, err := c.dir(e)
			if err != nil {
				return nil, nil, err
			}
			i, err := workload.OpenIdle(dir, n, 64, time.Hour)
			if err != nil {
				return nil, nil, err
			}
			c.add(i.Close)
			if err := i.Create(ctx); err != nil {
				return nil, nil, err
			}
			db, disk, err := c.raw(e)
			if err != nil {
				return nil, nil, err
			}
			r, err := workload.NewRawIdle(db, n)
			if err != nil {
				return nil, nil, err
			}
			return median(e.For, i.Meters(), i.Poke), median(e.For, disk.Meters(), r.Read), nil
		}),
	}}
}

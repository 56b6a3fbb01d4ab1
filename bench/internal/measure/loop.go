package measure

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Run is the result of a loop of operations.
type Run struct {
	Ops     int64
	Elapsed time.Duration
	Lat     Quantiles
}

// PerSecond is the rate of the run.
func (r Run) PerSecond() float64 { return float64(r.Ops) / r.Elapsed.Seconds() }

// Closed calls op from some workers, each in a loop, for about d, and records
// every latency. i counts the operations of all workers. The first error ends
// the loop and is returned, as is the end of ctx.
func Closed(ctx context.Context, workers int, d time.Duration, op func(i int) error) (Run, error) {
	lat := NewLatencies()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, ops atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	end := start.Add(d)
	for w := range workers {
		all.Go(func() {
			n := int64(0)
			defer func() { ops.Add(n) }()
			for t := time.Now(); t.Before(end) && ctx.Err() == nil; n++ {
				if err := op(int(next.Add(1))); err != nil {
					cancel(err)
					return
				}
				now := time.Now()
				lat.RecordAs(w, now.Sub(t))
				t = now
			}
		})
	}
	all.Wait()
	return Run{ops.Load(), time.Since(start), lat.Quantiles()}, context.Cause(ctx)
}

// Alone calls op in one loop for about d without a look at the clock between
// operations, which would be dearer than they are.
func Alone(ctx context.Context, d time.Duration, op func(i int) error) (Run, error) {
	const block = 256
	start := time.Now()
	n := 0
	for time.Since(start) < d {
		if err := ctx.Err(); err != nil {
			return Run{}, err
		}
		for range block {
			if err := op(n); err != nil {
				return Run{}, err
			}
			n++
		}
	}
	return Run{Ops: int64(n), Elapsed: time.Since(start)}, nil
}

// Each calls op once for each i below n, from some workers, and returns the
// first error.
func Each(ctx context.Context, workers, n int, op func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(workers, n) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := op(int(i)); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// Open calls op at a given rate for about d, whether or not earlier calls have
// returned, and takes each latency from the moment at which the call was due, so
// that a stall is seen by every call that it delays. At most limit calls are
// under way; beyond that the later ones wait, and their latency with them.
func Open(ctx context.Context, perSecond float64, d time.Duration, limit int, op func(i int) error, done func(at time.Time, late time.Duration)) (Run, error) {
	lat := NewLatencies()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	total := int64(perSecond * d.Seconds())
	var next, ops atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for w := range limit {
		all.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= total || ctx.Err() != nil {
					return
				}
				due := start.Add(time.Duration(float64(i) / perSecond * float64(time.Second)))
				if wait := time.Until(due); wait > 0 {
					time.Sleep(wait)
				}
				if err := op(int(i)); err != nil {
					cancel(err)
					return
				}
				now := time.Now()
				lat.RecordAs(w, now.Sub(due))
				if done != nil {
					done(now, now.Sub(due))
				}
				ops.Add(1)
			}
		})
	}
	all.Wait()
	return Run{ops.Load(), time.Since(start), lat.Quantiles()}, context.Cause(ctx)
}

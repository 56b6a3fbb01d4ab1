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
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
)

// p35 is streams of events, all of one object and spread over 1,000: the memory of each, and the time
// until all have an event.
func p35(s Size) (cases []*Case) {
	n := pick(s, 64, 10_000, 10_000)
	for _, objects := range []int{1, pick(s, 8, 1000, 1000)} {
		cases = append(cases, &Case{
			ID: "P35", What: fmt.Sprintf("streams over HTTP, bytes of memory each, objects=%d", objects), Size: fmt.Sprintf("streams=%d", n), N: float64(n), Unit: "B",
			Targets: []Target{atMost(32<<10, "≤ 32 KiB"), cost("ms to all", 500, "an event of each object is with all of its streams within 0.5 s")},
			Rounds:  1, // the streams stay open
			Prepare: prepared(func(_ context.Context, c *setup) (ours, reference Side) {
				streams := keep(c, fail.Must(workload.OpenStreams(c.dir(), objects)))
				return func(ctx context.Context) (Sample, error) { return streamBytes(ctx, streams, n) }, nil
			}),
		})
	}
	return cases
}

// streamBytes opens streams, after some that fill caches, and has all objects emit.
func streamBytes(ctx context.Context, streams *workload.Streams, n int) (Sample, error) {
	if err := streams.Connect(n / 16); err != nil {
		return Sample{}, err
	}
	before, goroutines, meters := measure.HeapBytes(), runtime.NumGoroutine(), measure.Start(nil)
	if err := streams.Connect(n - n/16); err != nil {
		return Sample{}, err
	}
	more := float64(n - n/16)
	bytes, routines := (measure.HeapBytes()-before)/more, float64(runtime.NumGoroutine()-goroutines)/more
	costs := meters.PerOp(int64(more))
	start := time.Now()
	if err := errors.Join(streams.Ring(ctx), streams.Seen()); err != nil {
		return Sample{}, err
	}
	costs["ms to all"], costs["goroutines"] = millis(time.Since(start)), routines
	return Sample{Value: bytes, Costs: costs}, nil
}

// p42 is the first page.
func p42(s Size) []*Case {
	n := pick(s, 100, 100_000, 1_000_000)
	return []*Case{{
		ID: "P42", What: "overview page", Size: fmt.Sprintf("objects=%d", n), N: float64(n), Unit: "µs",
		Targets: []Target{p99(30_000, "p99 ≤ 30 ms"), cost("page bytes", 60_000, "≤ 60 KB")},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			h := c.counters(n, object.Options{})
			fail.On(h.Fill(ctx, time.Time{}))
			v := keep(c, fail.Must(workload.Visit(h.Host.Host, server.Config{Auth: auth.Insecure()})))
			return func(ctx context.Context) (Sample, error) {
				size := 0
				sample, err := median(c.For, h.Meters(), func(int) (err error) {
					size, err = v.Get(ctx, "/ui/overview")
					return err
				})(ctx)
				if err == nil {
					sample.Costs["page bytes"] = float64(size)
				}
				return sample, err
			}, nil
		}),
	}}
}

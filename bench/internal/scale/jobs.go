package scale

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// debounced adds events to many debounce objects at random, and then waits until
// each has been flushed.
func debounced(ctx context.Context, o Options, r *Result) {
	n := o.of(100_000, 500)
	var flushed, flushes atomic.Int64
	job := debounce.New(debounce.Config[workload.Event, struct{}]{
		Name: "hooks", Quiet: 500 * time.Millisecond, MaxWait: 2 * time.Second,
		Flush: func(_ context.Context, f *debounce.Flush[workload.Event, struct{}]) error {
			flushes.Add(1)
			flushed.Add(int64(len(f.Events)))
			return nil
		},
	})
	h := fail.Must(workload.OpenHost(filepath.Join(o.Dir, "store"), object.Options{}, job))
	defer h.Close()
	var heap [][2]float64
	sampler := sample(ctx, 100*time.Millisecond, func(at float64) { heap = append(heap, [2]float64{at, heapMiB()}) })
	defer sampler.stop()
	run, err := measure.Closed(ctx, 256, 2*o.For, func(i int) error {
		_, err := job.Add(ctx, h, workload.Name(rand.IntN(n)), workload.Event{N: i}, debounce.EventID("event "+strconv.Itoa(i)))
		return err
	})
	fail.On(err)
	if err := until(ctx, 2*time.Minute, func() bool { return flushed.Load() >= run.Ops }); err != nil {
		fail.On(fmt.Errorf("%d of %d events were flushed: %w", flushed.Load(), run.Ops, err))
	}
	sampler.stop()
	r.figure("objects", float64(n), "")
	r.figure("adds with ids, 256 callers, beside the flushes", run.PerSecond(), "/s")
	r.figure("add: p99", run.Lat.P99, "µs")
	r.figure("flushes", float64(flushes.Load()), "")
	extra := flushed.Load() - run.Ops
	r.check("events flushed more than once", float64(extra), "", "none", extra == 0)
	r.figure("heap at most", highest(heap), "MiB")
}

// until polls a condition, for at most limit.
func until(ctx context.Context, limit time.Duration, met func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !met() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// continuously lets many continuous jobs run once a period, begun evenly over the
// first, and measures the second.
func continuously(ctx context.Context, o Options, r *Result) {
	n := o.of(100_000, 200)
	var measuring atomic.Bool
	var runs atomic.Int64
	late := measure.NewLatencies()
	job := continuous.New(continuous.Config[int]{
		Name: "minutely", Schedule: jobs.Rate(o.Period), StartLater: true,
		FewEvents: true,
		Run: func(_ context.Context, run *continuous.Run[int]) error {
			if measuring.Load() {
				runs.Add(1)
				late.Record(time.Since(run.Scheduled))
			}
			run.State++
			return nil
		},
	})
	h := fail.Must(workload.OpenHost(filepath.Join(o.Dir, "store"), object.Options{}, job))
	defer h.Close()
	perSecond := float64(n) / o.Period.Seconds()
	_, err := measure.Open(ctx, perSecond, o.Period, 64, func(i int) error {
		_, err := job.Start(ctx, h, workload.Name(i), 0)
		return err
	}, nil)
	fail.On(err)
	measuring.Store(true)
	meters := measure.Start(h.Meters())
	start := time.Now()
	select {
	case <-time.After(o.Period):
	case <-ctx.Done():
		fail.On(context.Cause(ctx))
	}
	measuring.Store(false)
	took := time.Since(start)
	costs := meters.PerOp(runs.Load())
	q := late.Quantiles()
	r.figure("jobs", float64(n), "")
	r.figure("period", o.Period.Seconds(), "s")
	share := float64(runs.Load()) / took.Seconds() / perSecond
	r.check("runs / those that were due", share, "", "≥ 0.95", share >= 0.95)
	r.figure("runs", float64(runs.Load())/took.Seconds(), "/s")
	r.figure("late: p50", q.P50/1e3, "ms")
	r.figure("late: p99", q.P99/1e3, "ms")
	r.figure("late: at most", q.Max/1e3, "ms")
	for _, name := range []string{"commits", "syncs", "allocs"} {
		r.figure(name+" of a run", costs[name], "")
	}
	r.figure("heap", heapMiB(), "MiB")
}

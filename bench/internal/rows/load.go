package rows

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
)

// p19 is the cost of eviction, inspection and scrubbing for the load beside them. The
// processor time of the reference is the time of the load alone, plus the time of the
// other work alone, as much of it as ran beside ours.
func p19(s Size) (cases []*Case) {
	const load = 64
	cold := pick(s, 500, 20_000, 20_000)
	others := []struct {
		what string
		f    func(ctx context.Context, h *workload.Counters, done *atomic.Int64) error
	}{
		{"2,000 evictions/s", func(ctx context.Context, h *workload.Counters, done *atomic.Int64) error {
			return paced(ctx, 2000, done, func(i int) error { return h.Read(hot + i%cold) })
		}},
		{"1,000 inspections/s, a list of 100 objects for each 100th", func(ctx context.Context, h *workload.Counters, done *atomic.Int64) error {
			return paced(ctx, 1000, done, func(i int) error { return inspect(ctx, h, i) })
		}},
		{"scrubbing", func(ctx context.Context, h *workload.Counters, done *atomic.Int64) error {
			for ctx.Err() == nil {
				seen, err := recovery.Scrub(ctx, h.Host.Host, recovery.ScrubOptions{})
				done.Add(int64(seen.Objects))
				if err != nil {
					return err
				}
			}
			return context.Cause(ctx)
		}},
	}
	for _, b := range others {
		cases = append(cases, &Case{
			ID: "P19", What: "durable increments beside " + b.what, Unit: "/s", Against: "the same load alone",
			Targets: []Target{ratio(0.9)},
			Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
				h := c.counters(hot+cold, object.Options{MaxLive: 2 * hot, IdleAfter: time.Hour})
				fail.On(h.Fill(ctx, time.Time{}))
				loaded := h.With(hot)
				l := &beside{
					alone: rate(load, c.For, h.Meters(), loaded.Increment), d: c.For,
					other: func(ctx context.Context, done *atomic.Int64) error { return b.f(ctx, h, done) },
				}
				return l.together, l.apart
			}),
		})
	}
	return cases
}

// beside is a load, and other work that runs beside it or not.
type beside struct {
	alone Side // the load
	other func(ctx context.Context, done *atomic.Int64) error
	d     time.Duration // of a round
	share float64       // how much other work ran for each operation of the load
}

// together measures the load with the other work beside it.
func (l *beside) together(ctx context.Context) (Sample, error) {
	var done atomic.Int64
	stop := beginBeside(ctx, func(ctx context.Context) error { return l.other(ctx, &done) })
	sample, err := l.alone(ctx)
	err = errors.Join(err, stop())
	if err == nil {
		l.share = float64(done.Load()) / float64(max(sample.Lat.Count, 1))
	}
	return sample, err
}

// apart measures the load alone. To its processor time it adds that of the other
// work alone, as much of it as ran beside the load.
func (l *beside) apart(ctx context.Context) (Sample, error) {
	sample, err := l.alone(ctx)
	if err != nil {
		return sample, err
	}
	var done atomic.Int64
	meters := measure.Start(nil)
	stop := beginBeside(ctx, func(ctx context.Context) error { return l.other(ctx, &done) })
	select {
	case <-time.After(l.d):
	case <-ctx.Done():
	}
	err = stop()
	sample.Costs[measure.ProcessorNanos] += l.share * meters.PerOp(max(done.Load(), 1))[measure.ProcessorNanos]
	return sample, err
}

// beginBeside runs f until the function that it returns is called, which returns
// f's error unless that is the end of its context.
func beginBeside(ctx context.Context, f func(ctx context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var err error
	var done sync.WaitGroup
	done.Go(func() { err = f(ctx) })
	return func() error {
		cancel()
		done.Wait()
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
}

// paced calls f at a rate until ctx ends, and counts the calls. Those that it cannot
// keep up with are left out.
func paced(ctx context.Context, perSecond int, done *atomic.Int64, f func(i int) error) error {
	const ticksPerSecond = 100
	tick := time.NewTicker(time.Second / ticksPerSecond)
	defer tick.Stop()
	for i := 0; ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		for range perSecond / ticksPerSecond {
			if err := f(i); err != nil {
				return err
			}
			i++
			done.Add(1)
		}
	}
}

func inspect(ctx context.Context, h *workload.Counters, i int) error {
	id := storage.ID{Class: workload.CounterClass, Name: workload.Name(i % hot)}
	if i%100 == 0 {
		_, err := h.Objects(ctx, id.Class, object.ObjectsOptions{After: id.Name, Limit: 100})
		return err
	}
	_, err := h.Inspect(ctx, id)
	return err
}

package rows

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
)

// p19 is what eviction, inspection and scrubbing cost the load beside them.
func p19(s Size) (cases []*Case) {
	const load = 64
	cold := pick(s, 500, 20_000, 20_000)
	beside := []struct {
		what string
		f    func(ctx context.Context, h *workload.Counters) error
	}{
		{"2,000 evictions/s", func(ctx context.Context, h *workload.Counters) error {
			return paced(ctx, 2000, func(i int) error { return h.Read(hot + i%cold) })
		}},
		{"1,000 inspections/s, a list of 100 objects for each 100th", func(ctx context.Context, h *workload.Counters) error {
			return paced(ctx, 1000, func(i int) error { return inspect(ctx, h, i) })
		}},
		{"scrubbing", func(ctx context.Context, h *workload.Counters) error {
			for ctx.Err() == nil {
				if _, err := recovery.Scrub(ctx, h.Host.Host, recovery.ScrubOptions{}); err != nil {
					return err
				}
			}
			return context.Cause(ctx)
		}},
	}
	for _, b := range beside {
		cases = append(cases, &Case{
			ID: "P19", What: "durable increments beside " + b.what, Unit: "/s", Against: "the same load alone",
			Targets: []Target{ratio(0.9)},
			Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
				h, err := c.counters(e, hot+cold, object.Options{MaxLive: 2 * hot, IdleAfter: time.Hour})
				if err != nil {
					return nil, nil, err
				}
				if err := h.Fill(ctx, time.Time{}); err != nil {
					return nil, nil, err
				}
				loaded := h.With(hot)
				alone := rate(load, e.For, h.Meters(), loaded.Increment)
				return func(ctx context.Context) (Sample, error) {
					stop := beginBeside(ctx, func(ctx context.Context) error { return b.f(ctx, h) })
					sample, err := alone(ctx)
					if failed := stop(); err == nil {
						err = failed
					}
					return sample, err
				}, alone, nil
			}),
		})
	}
	return cases
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

// paced calls f at a rate until ctx ends. What it cannot keep up with is left out.
func paced(ctx context.Context, perSecond int, f func(i int) error) error {
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
		}
	}
}

func inspect(ctx context.Context, h *workload.Counters, i int) error {
	id := storage.ID{Class: workload.CounterClass, Name: workload.Name(i % hot)}
	if i%100 == 0 {
		_, err := h.Objects(ctx, id.Class, id.Name, 100)
		return err
	}
	_, err := h.Inspect(ctx, id)
	return err
}

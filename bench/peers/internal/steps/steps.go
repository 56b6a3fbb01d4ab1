// Package steps holds the workloads of workflows of empty steps: those of rows P20 to P22 of
// docs/PERFORMANCE.md. All systems are driven by this code, ours too.
//
// A step counts as done when its result is stored as the system stores it, and the next one
// begins only then. A run counts as done when its caller has its result.
package steps

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/queue"
)

// System executes runs of a workflow of empty steps. Its methods may be called by many
// goroutines.
type System interface {
	// Run starts a run of n steps and returns when its result is known.
	Run(ctx context.Context, n int) error
	// Alone is Run, with how long each step took: from one step's return to the next one's.
	Alone(ctx context.Context, n int) (measure.Quantiles, error)
}

// short is the number of steps of a run of Short.
const short = 3

// longest bounds a workload that does not end.
const longest = 5 * time.Minute

// Workload is Alone, Many or Short.
type Workload func(context.Context, System, queue.Load, Processes, *figure.Reporter) error

// Measure runs all workloads of one system, after some runs that are not measured, because
// servers open connections and fill caches at first.
func Measure(ctx context.Context, s System, l queue.Load, p Processes, r *figure.Reporter) error {
	warmup := func(int) error { return s.Run(ctx, short) }
	if err := measure.Each(ctx, queue.Callers, queue.Callers, warmup); err != nil {
		return err
	}
	for _, w := range []Workload{Alone, Many, Short} {
		if err := w(ctx, s, l, p, r); err != nil {
			return err
		}
	}
	return nil
}

// Alone is one run and the median latency of its steps, as row P20.
func Alone(ctx context.Context, s System, l queue.Load, p Processes, r *figure.Reporter) error {
	return metered(ctx, "step", l.Alone, p, r, func(ctx context.Context) (int64, float64, error) {
		lat, err := s.Alone(ctx, l.Alone)
		if err == nil && lat.Count != int64(l.Alone) {
			err = fmt.Errorf("of %d steps %d were timed, so some were repeated or lost", l.Alone, lat.Count)
		}
		return lat.Count, lat.P50, err
	})
}

// Many is as many runs at a time as there are callers, as row P21.
func Many(ctx context.Context, s System, l queue.Load, p Processes, r *figure.Reporter) error {
	return metered(ctx, "steps", l.Steps, p, r, func(ctx context.Context) (int64, float64, error) {
		run, err := measure.Closed(ctx, queue.Callers, l.For, func(int) error { return s.Run(ctx, l.Steps) })
		return run.Ops * int64(l.Steps), run.PerSecond() * float64(l.Steps), err
	})
}

// Short is many short runs at a time, from start to result, as row P22.
func Short(ctx context.Context, s System, l queue.Load, p Processes, r *figure.Reporter) error {
	return metered(ctx, "runs", l.Runs, p, r, func(ctx context.Context) (int64, float64, error) {
		run, err := measure.Closed(ctx, l.Runs, l.For, func(int) error { return s.Run(ctx, short) })
		return run.Ops, run.PerSecond(), err
	})
}

// metered reports the figure of a workload, and as "<workload> processor" the processor time
// of each of its operations in microseconds.
func metered(ctx context.Context, workload string, n int, p Processes, r *figure.Reporter, f func(context.Context) (ops int64, value float64, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	before, err := p.Processor()
	if err != nil {
		return err
	}
	ops, value, err := f(ctx)
	if err != nil {
		return err
	}
	after, err := p.Processor()
	if err != nil {
		return err
	}
	if err := r.Add(workload, n, value); err != nil {
		return err
	}
	return r.Add(workload+" processor", n, (after-before).Seconds()*1e6/float64(ops))
}

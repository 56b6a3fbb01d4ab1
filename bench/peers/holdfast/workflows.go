package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/queue"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/steps"
	"github.com/holdfast-dev/holdfast/object"
)

// runs is a host with a workflow of empty steps.
type runs struct{ *workload.Steps }

// Run implements steps.System.
func (r runs) Run(_ context.Context, n int) error { return r.Steps.Run(n) }

// Alone implements steps.System.
func (r runs) Alone(_ context.Context, n int) (measure.Quantiles, error) { return r.Steps.Alone(n) }

// workflows measures each workload on a host of its own that executes as many runs at a
// time, as the rows do. few is another number of steps for steps.Many, if it is not 0.
func workflows(ctx context.Context, dir string, few int, l queue.Load, r *figure.Reporter) error {
	short := l
	short.Steps = few
	for _, w := range []struct {
		name   string
		atOnce int
		load   queue.Load
		run    steps.Workload
	}{
		{"alone", 1, l, steps.Alone},
		{"many", queue.Callers, l, steps.Many},
		{"few", queue.Callers, short, steps.Many},
		{"short", l.Runs, l, steps.Short},
	} {
		if w.load.Steps == 0 {
			continue
		}
		s, err := workload.OpenSteps(filepath.Join(dir, "steps-"+w.name), w.atOnce, object.Options{})
		if err != nil {
			return err
		}
		if err := errors.Join(w.run(ctx, runs{s}, w.load, nil, r), s.Close()); err != nil {
			return err
		}
	}
	return nil
}

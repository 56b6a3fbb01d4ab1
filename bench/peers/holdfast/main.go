// Command holdfast measures Holdfast itself with the workloads of the peers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/queue"
	"github.com/holdfast-dev/holdfast/object"
)

func main() {
	dir := flag.String("dir", "", "an empty directory")
	also := flag.Int("also", 0, "another number of alarms, for a peer that cannot have as many")
	few := flag.Int("few", 0, "another number of steps, for a peer that is slow")
	queue.Main(func(ctx context.Context, l queue.Load, r *figure.Reporter) error {
		for _, keys := range []int{1, 1000} {
			if err := increments(ctx, *dir, keys, l.For, r); err != nil {
				return err
			}
		}
		for _, n := range []int{l.Alarms, *also} {
			if err := alarms(ctx, *dir, n, r); err != nil {
				return err
			}
		}
		if err := queued(ctx, *dir, l, r); err != nil {
			return err
		}
		return workflows(ctx, *dir, *few, l, r)
	})
}

func increments(ctx context.Context, dir string, keys int, d time.Duration, r *figure.Reporter) (err error) {
	c, err := workload.OpenCounters(filepath.Join(dir, fmt.Sprintf("counters-%d", keys)), keys, object.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	run, err := measure.Closed(ctx, queue.Callers, d, c.Increment)
	if err != nil {
		return err
	}
	return r.Add("increments", keys, run.PerSecond())
}

// alarms measures until the effect of the last is durable, which is more than is
// asked of the peers.
func alarms(ctx context.Context, dir string, n int, r *figure.Reporter) (err error) {
	if n == 0 {
		return nil
	}
	a, err := workload.OpenAlarms(filepath.Join(dir, fmt.Sprintf("alarms-%d", n)), object.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	drain, late, _, err := a.Drain(ctx, n)
	if err != nil {
		return err
	}
	if err := r.Add("alarms", n, drain.Seconds()); err != nil {
		return err
	}
	return r.Add("late", n, late.P99/1e6)
}

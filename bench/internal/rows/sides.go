package rows

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
)

// rate measures operations a second of some callers.
func rate(callers int, d time.Duration, m measure.Meters, op func(i int) error) Side {
	return func(ctx context.Context) (Sample, error) {
		start := measure.Start(m)
		run, err := measure.Closed(ctx, callers, d, op)
		return Sample{Value: run.PerSecond(), Lat: &run.Lat, Costs: start.PerOp(run.Ops)}, err
	}
}

// median measures the median latency of one caller, in microseconds.
func median(d time.Duration, m measure.Meters, op func(i int) error) Side {
	return func(ctx context.Context) (Sample, error) {
		start := measure.Start(m)
		run, err := measure.Closed(ctx, 1, d, op)
		return Sample{Value: run.Lat.P50, Lat: &run.Lat, Costs: start.PerOp(run.Ops)}, err
	}
}

// nanos measures the mean time of one caller's operations, in nanoseconds.
func nanos(d time.Duration, op func(i int) error) Side {
	return func(ctx context.Context) (Sample, error) {
		start := measure.Start(nil)
		run, err := measure.Alone(ctx, d, op)
		if err != nil {
			return Sample{}, err
		}
		return Sample{Value: float64(run.Elapsed.Nanoseconds()) / float64(run.Ops), Costs: start.PerOp(run.Ops)}, nil
	}
}

// counters opens a host with counters.
func (c *closers) counters(e *Env, objects int, o object.Options, others ...object.Definition) (*workload.Counters, error) {
	dir, err := c.dir(e)
	if err != nil {
		return nil, err
	}
	h, err := workload.OpenCounters(dir, objects, o, others...)
	if err == nil {
		c.add(h.Close)
	}
	return h, err
}

// live opens a host with counters that are all in memory and stay there.
func (c *closers) live(ctx context.Context, e *Env, objects int) (*workload.Counters, error) {
	h, err := c.counters(e, objects, object.Options{MaxLive: 2 * objects, IdleAfter: time.Hour})
	if err != nil {
		return nil, err
	}
	return h, h.Wake(ctx)
}

// raw opens bare Pebble on a counted disk.
func (c *closers) raw(e *Env) (*pebble.DB, *measure.Disk, error) {
	dir, err := c.dir(e)
	if err != nil {
		return nil, nil, err
	}
	disk := measure.NewDisk()
	db, err := raw.Open(dir, disk)
	if err == nil {
		c.add(db.Close)
	}
	return db, disk, err
}

// turns opens the bare turn loop over some objects.
func (c *closers) turns(e *Env, objects int) (*raw.Turns, *measure.Disk, error) {
	db, disk, err := c.raw(e)
	if err != nil {
		return nil, nil, err
	}
	return raw.NewTurns(db, objects), disk, nil
}

package rows

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
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
func (c *setup) counters(objects int, o object.Options, others ...object.Definition) *workload.Counters {
	return keep(c, fail.Must(workload.OpenCounters(c.dir(), objects, o, others...)))
}

// live opens a host with counters that are all in memory and stay there.
func (c *setup) live(ctx context.Context, objects int) *workload.Counters {
	h := c.counters(objects, object.Options{MaxLive: 2 * objects, IdleAfter: time.Hour})
	fail.On(h.Wake(ctx))
	return h
}

// raw opens bare Pebble on a counted disk.
func (c *setup) raw() (*pebble.DB, *measure.Disk) {
	disk := measure.NewDisk()
	return keep(c, fail.Must(raw.Open(c.dir(), disk))), disk
}

// turns opens the bare turn loop over some objects.
func (c *setup) turns(objects int) (*raw.Turns, *measure.Disk) {
	db, disk := c.raw()
	return raw.NewTurns(db, objects), disk
}

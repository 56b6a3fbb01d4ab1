package rows

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/internal/pgtest"
)

// needsPostgreSQL is nil if the servers of PostgreSQL that the rows of logs need are installed.
func needsPostgreSQL() error {
	_, err := pgtest.Find()
	return err
}

// overLog opens a host with counters over an empty log.
func (c *setup) overLog(ctx context.Context, objects int) (*workload.Log, *workload.Counters) {
	l := c.log(ctx)
	h := c.counters(objects, l.Options())
	fail.On(h.Wake(ctx))
	return l, h
}

// log opens an empty log.
func (c *setup) log(ctx context.Context) *workload.Log {
	l := fail.Must(workload.OpenLog(ctx))
	c.fs = append(c.fs, func() error { l.Close(); return nil })
	return l
}

// record is the mean record of a run.
type record struct {
	sizeBytes int
	commits   float64
}

// mean runs a workload, and returns the mean record that it made.
func mean(ctx context.Context, l *workload.Log, callers int, d time.Duration, op func(i int) error) (record, error) {
	records, bytes := l.Appended()
	run, err := measure.Closed(ctx, callers, d, op)
	if err != nil {
		return record{}, err
	}
	r, b := l.Appended()
	if r -= records; r == 0 {
		return record{}, fmt.Errorf("no record was appended in %v", d)
	}
	return record{int((b - bytes) / r), float64(run.Ops) / float64(r)}, nil
}

// besideBare opens a host with counters over an empty log, and bare appends of records with the mean size of those that some callers make.
func (c *setup) besideBare(ctx context.Context, callers int) (*workload.Counters, *workload.Bare, record) {
	l, h := c.overLog(ctx, hot)
	size := fail.Must(mean(ctx, l, callers, c.For, h.Increment))
	return h, fail.Must(l.Bare(ctx, size.sizeBytes)), size
}

// p44 is durable increments over a log, beside bare appends of records of the same size, of which each counts for as many
// commits as one of ours holds.
func p44(s Size) []*Case {
	callers := pick(s, 8, 1024, 1024)
	return []*Case{{
		ID: "P44", What: "durable increments over a log with a standby, 1,000 objects", Size: fmt.Sprintf("callers=%d", callers), N: float64(callers), Unit: "/s",
		Against: "bare appends of the same records, one at a time", Targets: []Target{ratio(0.5)}, Needs: needsPostgreSQL,
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			h, bare, size := c.besideBare(ctx, callers)
			appends := rate(1, c.For, measure.Meters{}, func(int) error { return bare.Append(ctx) })
			return rate(callers, c.For, h.Meters(), h.Increment), func(ctx context.Context) (Sample, error) {
				sample, err := appends(ctx)
				sample.Value *= size.commits
				return sample, err
			}
		}),
	}}
}

// p45 is the processor time of this process for a durable increment over a log, beside one with a log of its own.
func p45(s Size) []*Case {
	callers := pick(s, 8, 1024, 1024)
	return []*Case{{
		ID: "P45", What: "durable increments over a log, processor time, 1,000 objects", Size: fmt.Sprintf("callers=%d", callers), N: float64(callers), Unit: "/s",
		Against: "the same on one machine", Targets: []Target{processorTimes(1.2, "processor ≤ 1.2 × reference")}, Needs: needsPostgreSQL,
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			_, over := c.overLog(ctx, hot)
			local := c.live(ctx, hot)
			return rate(callers, c.For, over.Meters(), over.Increment), rate(callers, c.For, local.Meters(), local.Increment)
		}),
	}}
}

// p46 is the latency of a commit over a log, at rest and with 64 callers, beside a bare append of the same bytes.
func p46(s Size) (cases []*Case) {
	for _, callers := range []int{1, pick(s, 8, 64, 64)} {
		target := times(1, 200, "≤ reference + 0.2 ms")
		if callers > 1 {
			target = times(2, 0, "≤ 2 × reference")
		}
		cases = append(cases, &Case{
			ID: "P46", What: "latency of a durable increment over a log, p50", Size: fmt.Sprintf("callers=%d", callers), N: float64(callers), Unit: "µs",
			Against: "a bare append of as many bytes", Targets: []Target{target}, Needs: needsPostgreSQL,
			Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
				h, bare, _ := c.besideBare(ctx, callers)
				return halfway(callers, c.For, h.Meters(), h.Increment), median(c.For, measure.Meters{}, func(int) error { return bare.Append(ctx) })
			}),
		})
	}
	return cases
}

// halfway measures the median latency of some callers, in microseconds.
func halfway(callers int, d time.Duration, m measure.Meters, op func(i int) error) Side {
	measured := rate(callers, d, m, op)
	return func(ctx context.Context) (Sample, error) {
		sample, err := measured(ctx)
		if err == nil {
			sample.Value = sample.Lat.P50
		}
		return sample, err
	}
}

// p47 is how fast an empty view is brought up to a log, beside reading the records.
func p47(s Size) []*Case {
	commits := pick(s, 200, 200_000, 1_000_000)
	return []*Case{{
		ID: "P47", What: "replay of a log into an empty view", Size: fmt.Sprintf("commits=%d", commits), N: float64(commits), Unit: "batches/s",
		Against: "reading its records", Rounds: 3, Targets: []Target{ratio(0.75)}, Needs: needsPostgreSQL,
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			l, h := c.overLog(ctx, hot)
			fail.On(measure.Each(ctx, 1024, commits, h.Increment))
			fail.On(h.Close()) // because a replay takes the log over
			batches := fail.Must(l.ReadAll(ctx))
			replay := func(context.Context) error {
				dir, err := c.NewDir()
				if err == nil {
					err = l.Replay(dir)
				}
				if removed := os.RemoveAll(dir); err == nil {
					err = removed
				}
				return err
			}
			read := func(ctx context.Context) error { _, err := l.ReadAll(ctx); return err }
			return amount(batches, measure.Meters{}, replay), amount(batches, measure.Meters{}, read)
		}),
	}}
}

// p48 is a call that only reads: over a log at rest beside a question for its head, and unconfirmed beside one machine.
func p48(s Size) []*Case {
	return []*Case{{
		ID: "P48", What: "call that only reads, over a log at rest, p50", Unit: "µs",
		Against: "a question for the head", Targets: []Target{times(1, 200, "≤ reference + 0.2 ms")}, Needs: needsPostgreSQL,
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			l, h := c.overLog(ctx, hot)
			return median(c.For, h.Meters(), h.Read), median(c.For, measure.Meters{}, func(int) error { _, err := l.Head(ctx, 0); return err })
		}),
	}, {
		ID: "P48", What: "call that only reads, over a log, unconfirmed", Unit: "ns",
		Against: "the same on one machine", Targets: []Target{times(1.1, 0, "≤ 1.1 × reference")}, Needs: needsPostgreSQL,
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			_, over := c.overLog(ctx, hot)
			local := c.live(ctx, hot)
			return nanos(c.For, over.Glance), nanos(c.For, local.Glance)
		}),
	}}
}

package rows

import (
	"context"
	"fmt"
	"os"
	"time"

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
func (c *closers) overLog(ctx context.Context, e *Env, objects int) (*workload.Log, *workload.Counters, error) {
	l, err := workload.OpenLog(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.add(func() error { l.Close(); return nil })
	h, err := c.counters(e, objects, l.Options())
	if err != nil {
		return nil, nil, err
	}
	return l, h, h.Wake(ctx)
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
func (c *closers) besideBare(ctx context.Context, e *Env, callers int) (*workload.Counters, *workload.Bare, record, error) {
	l, h, err := c.overLog(ctx, e, hot)
	if err != nil {
		return nil, nil, record{}, err
	}
	size, err := mean(ctx, l, callers, e.For, h.Increment)
	if err != nil {
		return nil, nil, record{}, err
	}
	bare, err := l.Bare(ctx, size.sizeBytes)
	return h, bare, size, err
}

// p44 is durable increments over a log, beside bare appends of records of the same size, of which each counts for as many
// commits as one of ours holds.
func p44(s Size) []*Case {
	callers := pick(s, 8, 1024, 1024)
	return []*Case{{
		ID: "P44", What: "durable increments over a log with a standby, 1,000 objects", Size: fmt.Sprintf("callers=%d", callers), N: float64(callers), Unit: "/s",
		Against: "bare appends of the same records, one at a time", Targets: []Target{ratio(0.5)}, Needs: needsPostgreSQL,
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			h, bare, size, err := c.besideBare(ctx, e, callers)
			if err != nil {
				return nil, nil, err
			}
			appends := rate(1, e.For, measure.Meters{}, func(int) error { return bare.Append(ctx) })
			return rate(callers, e.For, h.Meters(), h.Increment), func(ctx context.Context) (Sample, error) {
				sample, err := appends(ctx)
				sample.Value *= size.commits
				return sample, err
			}, nil
		}),
	}}
}

// p45 is the processor time of this process for a durable increment over a log, beside one with a log of its own.
func p45(s Size) []*Case {
	callers := pick(s, 8, 1024, 1024)
	return []*Case{{
		ID: "P45", What: "durable increments over a log, processor time, 1,000 objects", Size: fmt.Sprintf("callers=%d", callers), N: float64(callers), Unit: "/s",
		Against: "the same on one machine", Targets: []Target{processorTimes(1.2, "processor ≤ 1.2 × reference")}, Needs: needsPostgreSQL,
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			_, over, err := c.overLog(ctx, e, hot)
			if err != nil {
				return nil, nil, err
			}
			local, err := c.live(ctx, e, hot)
			if err != nil {
				return nil, nil, err
			}
			return rate(callers, e.For, over.Meters(), over.Increment), rate(callers, e.For, local.Meters(), local.Increment), nil
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
			Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
				h, bare, _, err := c.besideBare(ctx, e, callers)
				if err != nil {
					return nil, nil, err
				}
				return halfway(callers, e.For, h.Meters(), h.Increment), median(e.For, measure.Meters{}, func(int) error { return bare.Append(ctx) }), nil
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
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			l, h, err := c.overLog(ctx, e, hot)
			if err != nil {
				return nil, nil, err
			}
			if err := measure.Each(ctx, 1024, commits, h.Increment); err != nil {
				return nil, nil, err
			}
			if err := h.Close(); err != nil { // because a replay takes the log over
				return nil, nil, err
			}
			batches, err := l.ReadAll(ctx)
			if err != nil {
				return nil, nil, err
			}
			replay := func(context.Context) error {
				dir, err := e.NewDir()
				if err == nil {
					err = l.Replay(dir)
				}
				if removed := os.RemoveAll(dir); err == nil {
					err = removed
				}
				return err
			}
			read := func(ctx context.Context) error { _, err := l.ReadAll(ctx); return err }
			return amount(batches, measure.Meters{}, replay), amount(batches, measure.Meters{}, read), nil
		}),
	}}
}

// p48 is a call that only reads: over a log at rest beside a question for its head, and unconfirmed beside one machine.
func p48(s Size) []*Case {
	return []*Case{{
		ID: "P48", What: "call that only reads, over a log at rest, p50", Unit: "µs",
		Against: "a question for the head", Targets: []Target{times(1, 200, "≤ reference + 0.2 ms")}, Needs: needsPostgreSQL,
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			l, h, err := c.overLog(ctx, e, hot)
			if err != nil {
				return nil, nil, err
			}
			return median(e.For, h.Meters(), h.Read), median(e.For, measure.Meters{}, func(int) error { _, err := l.Head(ctx, 0); return err }), nil
		}),
	}, {
		ID: "P48", What: "call that only reads, over a log, unconfirmed", Unit: "ns",
		Against: "the same on one machine", Targets: []Target{times(1.1, 0, "≤ 1.1 × reference")}, Needs: needsPostgreSQL,
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			_, over, err := c.overLog(ctx, e, hot)
			if err != nil {
				return nil, nil, err
			}
			local, err := c.live(ctx, e, hot)
			if err != nil {
				return nil, nil, err
			}
			return nanos(e.For, over.Glance), nanos(e.For, local.Glance), nil
		}),
	}}
}

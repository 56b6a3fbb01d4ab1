package rows

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
)

// timers opens a host with one object that has n timers.
func (c *setup) timers(n int) *workload.Timers {
	m := keep(c, fail.Must(workload.OpenTimers(c.dir(), object.Options{})))
	fail.On(m.Fill(n))
	return m
}

// rawTimers opens the same rows in bare Pebble.
func (c *setup) rawTimers(n int) (*workload.RawTimers, *measure.Disk) {
	db, disk := c.raw()
	r := workload.NewRawTimers(db)
	fail.On(r.Fill(n))
	return r, disk
}

// p28 is timers of one object: moved, set and cancelled, with few and with many in it, and
// many due at once.
func p28(s Size) (cases []*Case) {
	const callers, few = 64, 10
	many := pick(s, 300, 100_000, 100_000)
	for _, op := range timerOps {
		for _, n := range []int{few, many} {
			cases = append(cases, &Case{
				ID: "P28", What: op.what + ", 64 callers of one object", Size: fmt.Sprintf("timers=%d", n), N: float64(n), Unit: "/s",
				Against: "the same rows in bare Pebble, pipelined",
				Targets: []Target{ratio(0.5)},
				Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
					m := c.timers(n)
					r, disk := c.rawTimers(n)
					return rate(callers, c.For, m.Meters(), op.ours(m)), rate(callers, c.For, disk.Meters(), op.raw(r))
				}),
			})
		}
		cases = append(cases, &Case{
			ID: "P28", What: op.beside, Size: fmt.Sprintf("timers=%d", many), N: float64(many), Unit: "/s",
			Against: "the same beside 10",
			Targets: []Target{ratio(1 / 1.3)},
			Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
				full := c.timers(many)
				empty := c.timers(few)
				return rate(callers, c.For, full.Meters(), op.ours(full)), rate(callers, c.For, empty.Meters(), op.ours(empty))
			}),
		})
	}
	return append(cases, p28Due(s))
}

// timerOps are what P28 does with a timer, in ours and in the reference.
var timerOps = []struct {
	what, beside string
	ours         func(*workload.Timers) func(int) error
	raw          func(*workload.RawTimers) func(int) error
}{
	{
		"one timer moved", "a timer moved beside many others",
		func(t *workload.Timers) func(int) error { return t.Move }, func(r *workload.RawTimers) func(int) error { return r.Move },
	},
	{
		"one timer set, and cancelled in the next turn", "a timer set and cancelled beside many others",
		func(t *workload.Timers) func(int) error { return t.SetCancel }, func(r *workload.RawTimers) func(int) error { return r.SetCancel },
	},
}

// p28Due is timers of one object that are due at once, until the last is durable.
func p28Due(s Size) *Case {
	n := pick(s, 300, 10_000, 10_000)
	return &Case{
		ID: "P28", What: "timers of one object due at once, until the last is done", Size: fmt.Sprintf("timers=%d", n), N: float64(n), Unit: "s",
		Against: "the same reads and deletes in bare Pebble, 64 a commit",
		Targets: []Target{atMost(1, "≤ 1 s")},
		Prepare: prepared(func(_ context.Context, c *setup) (ours, reference Side) {
			return drainTimers(c.Env, n), drainRawTimers(c.Env, n)
		}),
	}
}

// drainTimers opens a new host for each round.
func drainTimers(e *Env, n int) Side {
	return fresh(e, func(_ context.Context, c *setup) (Sample, error) {
		d, costs, err := keep(c, fail.Must(workload.OpenTimers(c.dir(), object.Options{}))).Drain(n)
		return Sample{Value: d.Seconds(), Costs: costs}, err
	})
}

func drainRawTimers(e *Env, n int) Side {
	return fresh(e, func(_ context.Context, c *setup) (Sample, error) {
		db, disk := c.raw()
		meters := measure.Start(disk.Meters())
		d, err := workload.NewRawTimers(db).Drain(n)
		return Sample{Value: d.Seconds(), Costs: meters.PerOp(int64(n))}, err
	})
}

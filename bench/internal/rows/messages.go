package rows

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
)

// messageBytes is about the size of a stored message of the workload.
const messageBytes = 70

// messages opens a host with objects that send to one another.
func (c *closers) messages(e *Env, objects int) (*workload.Messages, error) {
	dir, err := c.dir(e)
	if err != nil {
		return nil, err
	}
	m, err := workload.OpenMessages(dir, objects, object.Options{})
	if err == nil {
		c.add(m.Close)
	}
	return m, err
}

// p26 is a message from turn to turn, and a chain of ten.
func p26(s Size) (cases []*Case) {
	for _, n := range callers(s) {
		cases = append(cases, &Case{
			ID: "P26", What: "messages, turn to turn, 1,000 objects", Size: fmt.Sprintf("callers=%d", n), N: float64(n), Unit: "/s",
			Against: "bare Pebble with the same two batches",
			Targets: []Target{ratio(0.5)},
			Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
				m, err := c.messages(e, hot)
				if err != nil {
					return nil, nil, err
				}
				turns, disk, err := c.turns(e, hot)
				if err != nil {
					return nil, nil, err
				}
				return rate(n, e.For, m.Meters(), m.Pass), rate(n, e.For, disk.Meters(), func(i int) error { return turns.Pass(i, 1, messageBytes) }), nil
			}),
		})
	}
	return append(cases, &Case{
		ID: "P26", What: "latency of a chain of ten messages, p50", Unit: "µs", Against: "one synced commit, p50",
		Targets: []Target{times(1, 215, "≤ reference + 15 µs + 10 × 20 µs")},
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			m, err := c.messages(e, hot)
			if err != nil {
				return nil, nil, err
			}
			turns, disk, err := c.turns(e, hot)
			if err != nil {
				return nil, nil, err
			}
			return median(e.For, m.Meters(), m.Chain), median(e.For, disk.Meters(), turns.Commit), nil
		}),
	})
}

// p27 is many messages that wait for one slow receiver.
func p27(s Size) []*Case {
	n := pick(s, 300, 100_000, 1_000_000)
	size := fmt.Sprintf("waiting=%d", n)
	return []*Case{{
		ID: "P27", What: "heap of messages that wait for one slow receiver", Size: size, N: float64(n), Unit: "MiB", Rounds: 1,
		Targets: []Target{atMost(32, "≤ 32 MiB")},
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			return func(ctx context.Context) (_ Sample, err error) { return heldMessages(e, n) }, nil, nil
		}),
	}, {
		ID: "P27", What: "messages of others beside those that wait", Size: size, N: float64(n), Unit: "/s", Against: "the same without them",
		Targets: []Target{ratio(1 / 1.3)},
		Prepare: prepared(func(ctx context.Context, e *Env, c *closers) (ours, reference Side, err error) {
			full, err := c.messages(e, hot)
			if err != nil {
				return nil, nil, err
			}
			alone, err := c.messages(e, hot)
			if err != nil {
				return nil, nil, err
			}
			if err := full.Fill(n); err != nil {
				return nil, nil, err
			}
			return rate(64, e.For, full.Meters(), full.Pass), rate(64, e.For, alone.Meters(), alone.Pass), nil
		}),
	}}
}

// heldMessages is the memory that n waiting messages add to the heap of a host, without
// those of the store.
func heldMessages(e *Env, n int) (_ Sample, err error) {
	c := &closers{}
	defer func() {
		if closed := c.close(); err == nil {
			err = closed
		}
	}()
	m, err := c.messages(e, hot)
	if err != nil {
		return Sample{}, err
	}
	if err := m.Fill(64); err != nil { // as many as are under way
		return Sample{}, err
	}
	before, meters := measure.HeapBytes(), measure.Start(nil)
	if err := m.Fill(n); err != nil {
		return Sample{}, err
	}
	const mebi = 1 << 20
	return Sample{Value: (measure.HeapBytes() - before) / mebi, Costs: meters.PerOp(int64(n))}, nil
}

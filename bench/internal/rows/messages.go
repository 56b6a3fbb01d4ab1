package rows

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
)

// messageBytes is about the size of a stored message of the workload.
const messageBytes = 70

// messages opens a host with objects that send to one another.
func (c *setup) messages(objects int) *workload.Messages {
	return keep(c, fail.Must(workload.OpenMessages(c.dir(), objects, object.Options{})))
}

// p26 is a message from turn to turn, and a chain of ten.
func p26(s Size) (cases []*Case) {
	for _, n := range callers(s) {
		cases = append(cases, &Case{
			ID: "P26", What: "messages, turn to turn, 1,000 objects", Size: fmt.Sprintf("callers=%d", n), N: float64(n), Unit: "/s",
			Against: "bare Pebble with the same two batches",
			Targets: []Target{ratio(0.5)},
			Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
				m := c.messages(hot)
				turns, disk := c.turns(hot)
				return rate(n, c.For, m.Meters(), m.Pass), rate(n, c.For, disk.Meters(), func(i int) error { return turns.Pass(i, 1, messageBytes) })
			}),
		})
	}
	return append(cases, &Case{
		ID: "P26", What: "latency of a chain of ten messages, p50", Unit: "µs", Against: "one synced commit, p50",
		Targets: []Target{times(1, 215, "≤ reference + 15 µs + 10 × 20 µs")},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			m := c.messages(hot)
			turns, disk := c.turns(hot)
			return median(c.For, m.Meters(), m.Chain), median(c.For, disk.Meters(), turns.Commit)
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
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			return heldMessages(c.Env, n), nil
		}),
	}, {
		ID: "P27", What: "messages of others beside those that wait", Size: size, N: float64(n), Unit: "/s", Against: "the same without them",
		Targets: []Target{ratio(1 / 1.3)},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			full := c.messages(hot)
			alone := c.messages(hot)
			fail.On(full.Fill(n))
			return rate(64, c.For, full.Meters(), full.Pass), rate(64, c.For, alone.Meters(), alone.Pass)
		}),
	}}
}

// heldMessages is the memory that n waiting messages add to the heap of a host, without
// those of the store.
func heldMessages(e *Env, n int) Side {
	return fresh(e, func(_ context.Context, c *setup) (Sample, error) {
		m := c.messages(hot)
		fail.On(m.Fill(64)) // as many as are under way
		before, meters := measure.HeapBytes(), measure.Start(nil)
		fail.On(m.Fill(n))
		const mebi = 1 << 20
		return Sample{Value: (measure.HeapBytes() - before) / mebi, Costs: meters.PerOp(int64(n))}, nil
	})
}

package rows

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/object"
)

// hot is over how many objects a row goes that says nothing of their number.
const hot = 1000

// p1 is a call that reads memory of a live object.
func p1(s Size) (cases []*Case) {
	for _, objects := range pick(s, []int{10}, []int{1, 100_000}, []int{1, 1000, 10_000, 100_000}) {
		cases = append(cases, &Case{
			ID: "P1", What: "call that reads memory", Size: fmt.Sprintf("objects=%d", objects), N: float64(objects), Unit: "ns",
			Against: "a mailbox that its caller runs, found by number",
			Targets: []Target{
				atMost(300, "≤ 300 ns"), cost("allocs", 1.05, "≤ 1 allocation"),
				times(1/0.3, 0, "≥ 0.3 × as many as the reference"),
			},
			Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
				h := c.live(ctx, objects)
				boxes := raw.NewMailboxes(objects)
				return nanos(c.For, h.Read), nanos(c.For, func(i int) error {
					boxes.Read(i)
					return nil
				})
			}),
		})
	}
	return cases
}

// p2 is a call that reads one key.
func p2(Size) []*Case {
	return []*Case{{
		ID: "P2", What: "call that reads one key", Unit: "ns", Against: "Pebble's Get of it",
		Targets: []Target{times(1, 700, "≤ reference + 0.7 µs")},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			h := c.counters(hot, object.Options{})
			fail.On(h.Fill(ctx, time.Time{}))
			turns, _ := c.turns(hot)
			for i := range hot {
				fail.On(turns.Commit(i))
			}
			return nanos(c.For, h.Load), nanos(c.For, func(i int) error {
				_, err := turns.Get(i)
				return err
			})
		}),
	}}
}

// p3 and p4 are durable increments of one object and of 1,000.
func p3(s Size) []*Case { return increments(s, "P3", "durable increments, one object", 1) }

func p4(s Size) []*Case { return increments(s, "P4", "durable increments, 1,000 objects", hot) }

func callers(s Size) []int {
	return pick(s, []int{16}, []int{64, 1024}, []int{1, 16, 64, 256, 1024})
}

func increments(s Size, id, what string, objects int) (cases []*Case) {
	for _, n := range callers(s) {
		cases = append(cases, &Case{
			ID: id, What: what, Size: fmt.Sprintf("callers=%d", n), N: float64(n), Unit: "/s",
			Against: "the bare turn loop over as many objects",
			Targets: []Target{ratio(0.7)},
			Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
				h := c.counters(objects, object.Options{})
				turns, disk := c.turns(objects)
				return rate(n, c.For, h.Meters(), h.Increment), rate(n, c.For, disk.Meters(), turns.Increment)
			}),
		})
	}
	return cases
}

// p36 is P4 with an event in each turn, with the feed and without it.
func p36(s Size) (cases []*Case) {
	for _, n := range callers(s) {
		cases = append(cases, &Case{
			ID: "P36", What: "durable increments with an event each and the feed, 1,000 objects", Size: fmt.Sprintf("callers=%d", n), N: float64(n), Unit: "/s",
			Against: "the same without the feed",
			Targets: []Target{ratio(0.9)},
			Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
				fed := c.counters(hot, object.Options{Feed: true})
				plain := c.counters(hot, object.Options{})
				return rate(n, c.For, fed.Meters(), fed.Tell), rate(n, c.For, plain.Meters(), plain.Tell)
			}),
		})
	}
	return cases
}

// p5 is the latency of one durable call with nothing else running.
func p5(Size) []*Case {
	return []*Case{{
		ID: "P5", What: "latency of one durable call, p50", Unit: "µs", Against: "one synced commit, p50",
		Targets: []Target{times(1, 15, "≤ reference + 15 µs")},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			h := c.counters(1, object.Options{})
			turns, disk := c.turns(1)
			return median(c.For, h.Meters(), h.Increment), median(c.For, disk.Meters(), turns.Commit)
		}),
	}}
}

// p6 is setting an alarm: row and index in the turn's batch.
func p6(s Size) (cases []*Case) {
	for _, n := range callers(s) {
		cases = append(cases, &Case{
			ID: "P6", What: "set an alarm, 1,000 objects", Size: fmt.Sprintf("callers=%d", n), N: float64(n), Unit: "/s",
			Against: "P4: our own durable increments",
			Targets: []Target{ratio(0.7)},
			Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
				alarms := c.counters(hot, object.Options{})
				counts := c.counters(hot, object.Options{})
				far := time.Now().Add(24 * time.Hour)
				set := func(i int) error { return alarms.Arm(i, far.Add(time.Duration(i)*time.Microsecond)) }
				return rate(n, c.For, alarms.Meters(), set), rate(n, c.For, counts.Meters(), counts.Increment)
			}),
		})
	}
	return cases
}

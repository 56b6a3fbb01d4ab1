package rows

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// The reference of P1 finds its objects by number. Beside a reference that finds them
// by name it shows how much of the difference is the look-up.
//
// The targets of P6 and P14 are stated against a plain increment, which stores one row
// where they store three. The time of bare Pebble for as many rows shows how much of
// the difference is due to them.

// p1Floor is P1 beside mailboxes that are found by name.
func p1Floor(s Size) (cases []*Case) {
	for _, objects := range pick(s, []int{10}, []int{1, 100_000}, []int{1, 100_000}) {
		cases = append(cases, &Case{
			ID: "P1", What: "call that reads memory, beside a look-up by name", Size: fmt.Sprintf("objects=%d", objects), N: float64(objects), Unit: "ns",
			Against: "a mailbox that its caller runs, found by name in a concurrent map",
			Targets: []Target{times(1/0.3, 0, "≥ 0.3 × as many as the reference")},
			Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
				h := c.live(ctx, objects)
				names := workload.Names(objects)
				boxes := raw.NewNamedMailboxes(names)
				return nanos(c.For, h.Read), nanos(c.For, func(i int) error {
					boxes.ReadNamed(names[i%objects])
					return nil
				})
			}),
		})
	}
	return cases
}

// p6Floor is P6 beside the same rows in the bare turn loop.
func p6Floor(s Size) (cases []*Case) {
	for _, n := range pick(s, []int{16}, []int{64, 1024}, []int{64, 1024}) {
		cases = append(cases, &Case{
			ID: "P6", What: "set an alarm, beside the same rows", Size: fmt.Sprintf("callers=%d", n), N: float64(n), Unit: "/s",
			Against: "the bare turn loop with the same rows",
			Targets: []Target{ratio(0.7)},
			Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
				h := c.counters(hot, object.Options{})
				turns, disk := c.turns(hot)
				far := time.Now().Add(24 * time.Hour)
				set := func(i int) error { return h.Arm(i, far.Add(time.Duration(i)*time.Microsecond)) }
				return rate(n, c.For, h.Meters(), set), rate(n, c.For, disk.Meters(), alarmRows(turns, far))
			}),
		})
	}
	return cases
}

// alarmRows moves the alarm of an object: its row, and an entry of the index for
// the one that was.
func alarmRows(turns *raw.Turns, far time.Time) func(i int) error {
	due := make([]int64, hot)
	return func(i int) error {
		return turns.Rows(i, func(b *storage.Batch, o storage.Object, n uint64) {
			at := far.Add(time.Duration(i) * time.Microsecond)
			to, from := alarm.Nanos(at), &due[i%hot]
			if n == 1 {
				from = nil
			}
			b.MoveAlarm(o, from, &to, alarm.AppendRow(nil, alarm.Row{Due: at, Gen: n, Scheduled: at}), alarm.AppendIndex(nil, n, o.ID.Class, o.ID.Name))
			due[i%hot] = to
		})
	}
}

// p14Floor is P14 beside as many rows of as many bytes in the bare turn loop.
func p14Floor(s Size) (cases []*Case) {
	for _, objects := range []int{1, hot} {
		for _, n := range pick(s, []int{16}, []int{64, 1024}, []int{64, 1024}) {
			cases = append(cases, &Case{
				ID: "P14", What: "debounce adds with ids, beside the same rows", Size: fmt.Sprintf("objects=%d callers=%d", objects, n), N: float64(n), Unit: "/s",
				Against: "the bare turn loop with as many rows and bytes",
				Targets: []Target{ratio(0.7)},
				Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
					d := keep(c, fail.Must(workload.OpenDebounce(c.dir(), objects)))
					turns, disk := c.turns(objects)
					return rate(n, c.For, d.Meters(), d.Add), rate(n, c.For, disk.Meters(), func(i int) error { return turns.Rows(i, eventRows) })
				}),
			})
		}
	}
	return cases
}

// p14Least is the bare turn loop with the two rows that any add with an id stores,
// beside our own increments: the target of an add at best.
func p14Least(s Size) (cases []*Case) {
	for _, objects := range []int{1, hot} {
		for _, n := range pick(s, []int{16}, []int{64, 1024}, []int{64, 1024}) {
			cases = append(cases, &Case{
				ID: "P14", What: "bare turn loop, an event and the mark of its id", Size: fmt.Sprintf("objects=%d callers=%d", objects, n), N: float64(n), Unit: "/s",
				Against: map[int]string{1: "P3", hot: "P4"}[objects] + ": our own durable increments",
				Targets: []Target{ratio(0.6)},
				Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
					turns, disk := c.turns(objects)
					counts := c.counters(objects, object.Options{})
					return rate(n, c.For, disk.Meters(), func(i int) error { return turns.Rows(i, eventRows) }),
						rate(n, c.For, counts.Meters(), counts.Increment)
				}),
			})
		}
	}
	return cases
}

// p15Floor is P15 beside the same rows in the bare turn loop: a run ends and the
// next one begins in one commit.
func p15Floor(Size) []*Case {
	return []*Case{{
		ID: "P15", What: "continuous job, beside the same rows", Unit: "µs",
		Against: "the bare turn loop with as many rows and bytes, p50",
		Targets: []Target{times(2, 60, "≤ 2 × reference + 60 µs")},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			ours = c.runs(ctx)
			turns, disk := c.turns(1)
			return ours, median(c.For, disk.Meters(), func(i int) error { return turns.Rows(i, runRows) })
		}),
	}}
}

// runRows are those of the end of a run and of the begin of the next: each has the
// job's metadata, an event and its expiry; then the state, the row of the begun
// execution, the alarm with its entry of the index, and the mark of an open execution.
func runRows(b *storage.Batch, o storage.Object, n uint64) {
	from, to := int64(n-1), int64(n)
	b.SetData(o, "s", filler[:2])
	for i, size := range [...]int{301, 469} {
		b.SetData(o, "m", filler[:size])
		seq := 2*n + uint64(i)
		b.SetData(o, fmt.Sprintf("e/%08x", seq), filler[:85])
		b.SetData(o, fmt.Sprintf("expiry/%012x", seq), nil)
	}
	b.SetData(o, "x/0000000100000001", filler[:72])
	b.SetData(o, "o", filler[:28])
	b.MoveAlarm(o, &from, &to, filler[:12], filler[:12])
}

var filler = make([]byte, 512)

// eventRows are an event with the count of its generation, and the mark of its id,
// which any design must store.
func eventRows(b *storage.Batch, o storage.Object, n uint64) {
	id, now := strconv.FormatUint(n, 10), time.Now()
	expires := now.Add(24 * time.Hour).UnixNano()
	b.SetData(o, fmt.Sprintf("e/000000000001/%08x", n), fmt.Appendf(make([]byte, 28, 80), `{"id":"event %s","n":%s}`, id, id))
	b.SetMark(o, storage.Removal(o.Number, now.UnixNano(), expires), "e/event "+id, expires, fmt.Appendf(nil, `{"generation":1,"events":%s}`, id))
}

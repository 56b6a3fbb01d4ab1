package rows

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// journals opens a host with journals, of which at most live are in memory.
func (c *setup) journals(objects, live int) *workload.Journals {
	return keep(c, fail.Must(workload.OpenJournals(c.dir(), objects, live)))
}

// p30 is appends to one journal, beside P3 and beside bare Pebble with the same rows.
func p30(s Size) (cases []*Case) {
	for _, n := range callers(s) {
		cases = append(cases, &Case{
			ID: "P30", What: "journal appends, one object", Size: fmt.Sprintf("callers=%d", n), N: float64(n), Unit: "/s",
			Against: "P3: durable increments, one object",
			Targets: []Target{ratio(0.8)},
			Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
				j := c.journals(1, 10)
				h := c.counters(1, object.Options{})
				return rate(n, c.For, j.Meters(), j.Append), rate(n, c.For, h.Meters(), h.Increment)
			}),
		}, &Case{
			ID: "P30", What: "journal appends, one object, beside bare Pebble", Size: fmt.Sprintf("callers=%d", n), N: float64(n), Unit: "/s",
			Against: "the bare turn loop with the same rows",
			Targets: []Target{ratio(0.56)},
			Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
				j := c.journals(1, 10)
				turns, disk := c.turns(1)
				return rate(n, c.For, j.Meters(), j.Append), rate(n, c.For, disk.Meters(), journalTurn(turns))
			}),
		})
	}
	return cases
}

// journalTurn stores the rows of an append in bare Pebble.
func journalTurn(t *raw.Turns) func(i int) error {
	return func(i int) error {
		return t.Rows(i, func(b *storage.Batch, o storage.Object, n uint64) { workload.JournalRows(b, o, n) })
	}
}

// p30Cold is the activation of a journal with as many events as one can have to fold.
func p30Cold(s Size) []*Case {
	const events = 99
	n := pick(s, 200, 5000, 5000)
	return []*Case{{
		ID: "P30", What: fmt.Sprintf("activation of a journal with %d events, data in cache, p50", events), Unit: "µs",
		Against: "the reads of bare Pebble that it needs, p50",
		Targets: []Target{atMost(200, "≤ 200 µs")},
		Prepare: prepared(func(ctx context.Context, c *setup) (ours, reference Side) {
			j := c.journals(n, 64)
			fail.On(j.Fill(ctx, events))
			db, disk := c.raw()
			r := fail.Must(workload.NewRawJournals(db, n, events))
			return median(c.For, j.Meters(), j.Read), median(c.For, disk.Meters(), r.Read)
		}),
	}}
}

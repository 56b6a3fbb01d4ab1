package rows

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// p18 is the space on disk of objects with one small value and an alarm, and the bytes
// written until they lie there: two lines of one measurement.
func p18(s Size) (cases []*Case) {
	for _, n := range pick(s, []int{1000}, []int{100_000}, []int{10_000, 100_000, 1_000_000}) {
		size := fmt.Sprintf("objects=%d", n)
		ours := &onDisk{objects: n, store: storeObjects}
		reference := &onDisk{objects: n, store: storeRows}
		cases = append(cases,
			&Case{
				ID: "P18", What: "disk of an object with a small value and an alarm, compacted", Size: size, N: float64(n), Unit: "B", Rounds: 1,
				Against: "the same rows in bare Pebble",
				Targets: []Target{atMost(200, "≤ 200 B")},
				Prepare: perObject(ours, reference, func(d *onDisk) float64 { return d.stored }),
			},
			&Case{
				ID: "P18", What: "bytes written for it, logs, flushes and compactions", Size: size, N: float64(n), Unit: "B", Rounds: 1,
				Against: "the same rows in bare Pebble",
				Targets: []Target{times(1.2, 0, "≤ 1.2 × reference")},
				Prepare: perObject(ours, reference, func(d *onDisk) float64 { return d.written }),
			})
	}
	return cases
}

// onDisk is a store of some objects that one side makes and compacts, once.
type onDisk struct {
	objects int
	store   func(ctx context.Context, dir string, disk *measure.Disk, n int, due time.Time) (uint64, error)

	done            bool
	stored, written float64 // bytes of an object
	costs           measure.Costs
}

func perObject(ours, reference *onDisk, value func(*onDisk) float64) func(context.Context, *Env) (*Pair, error) {
	return prepared(func(_ context.Context, c *setup) (Side, Side) {
		side := func(d *onDisk) Side {
			return func(ctx context.Context) (Sample, error) {
				err := d.measure(ctx, c.Env)
				return Sample{Value: value(d), Costs: d.costs}, err
			}
		}
		return side(ours), side(reference)
	})
}

func (d *onDisk) measure(ctx context.Context, e *Env) (err error) {
	if d.done {
		return nil
	}
	c := &setup{Env: e}
	defer func() { err = errors.Join(err, c.close()) }()
	defer fail.Caught(&err)
	disk, meters := measure.NewDisk(), measure.Start(nil)
	stored := fail.Must(d.store(ctx, c.dir(), disk, d.objects, time.Now().Add(24*time.Hour)))
	d.stored, d.written = float64(stored)/float64(d.objects), float64(disk.Written())/float64(d.objects)
	d.costs = meters.PerOp(int64(d.objects))
	d.done = true
	return nil
}

// storeObjects makes the objects by calls of a host, then compacts its store.
func storeObjects(ctx context.Context, dir string, disk *measure.Disk, n int, due time.Time) (uint64, error) {
	h := fail.Must(workload.OpenCounters(dir, n, object.Options{}))
	fail.On(errors.Join(h.Fill(ctx, due), h.Close()))
	disk.Add(h.Disk)
	engine := fail.Must(pebblestore.Open(dir, pebblestore.Options{FS: disk}))
	stored, err := compact(ctx, workload.Database(engine))
	return stored, errors.Join(err, engine.Close())
}

// storeRows writes the rows of such objects, a batch for each.
func storeRows(ctx context.Context, dir string, disk *measure.Disk, n int, due time.Time) (uint64, error) {
	db, err := raw.Open(dir, disk)
	if err != nil {
		return 0, err
	}
	f := workload.Fill{Class: workload.CounterClass, Objects: n, Value: workload.Number8(0), First: due, Step: time.Microsecond}
	for i := range n {
		if err := raw.Commit(db, f.Object(i), pebble.NoSync); err != nil {
			return 0, errors.Join(err, db.Close())
		}
	}
	if err := errors.Join(db.Flush(), db.Close()); err != nil { // as an orderly close of ours
		return 0, err
	}
	if db, err = raw.Open(dir, disk); err != nil {
		return 0, err
	}
	stored, err := compact(ctx, db)
	return stored, errors.Join(err, db.Close())
}

// compact compacts all keys and returns the size of the tables.
func compact(ctx context.Context, db *pebble.DB) (uint64, error) {
	if err := db.Compact(ctx, []byte{0}, []byte{0xff, 0xff, 0xff}, false); err != nil {
		return 0, err
	}
	total := db.Metrics().Total()
	return uint64(total.TablesSize), nil
}

package workload

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// recordedRun is the id of the run whose batches are recorded, as long as a Name.
const recordedRun = "########"

// RawRuns is the reference of Steps, Wakes and Sleepers: batches of a run, as a host has
// committed them, in bare Pebble. Each run gets the name and the number of an object of its
// own.
type RawRuns struct {
	DB      *pebble.DB
	batches []recorded
	next    atomic.Int64 // the number of the next run or step
}

// recorded is a batch, and the places in it where the name and the number of its object
// stand.
type recorded struct {
	repr          []byte
	names, number []int
}

// NewRawRuns records the batches of a run of so many steps.
func NewRawRuns(db *pebble.DB, steps int) (*RawRuns, error) {
	e := &recorder{Engine: memstore.New()}
	s, err := OpenSteps("", 1, e.options())
	if err != nil {
		return nil, err
	}
	e.begin()
	err = s.RunAs(recordedRun, steps)
	e.end()
	return e.runs(db, s.Host, StepsClass, steps+1, err)
}

// NewRawWakes records the batches of a run from a signal until the step that follows it is
// stored: the signal, its place in the history, and the step.
func NewRawWakes(ctx context.Context, db *pebble.DB) (*RawRuns, error) {
	e := &recorder{Engine: memstore.New()}
	w, err := OpenWakes(ctx, "", Wake{Runs: 1, Anew: true, recorder: e})
	if err != nil {
		return nil, err
	}
	e.begin()
	err = w.Wake(0)
	return e.runs(db, w.Host, wakesClass, 3, err)
}

// NewRawSleepers records the batches of a run from the end of its sleep to its own end: the
// begin of its execution, the first step, and the second with the end.
func NewRawSleepers(ctx context.Context, db *pebble.DB) (*RawRuns, error) {
	const asleep = 3 * time.Second // more than a start takes, and than a run waits in memory
	e := &recorder{Engine: memstore.New()}
	s, err := openSleepers("", 1, e.options())
	if err != nil {
		return nil, err
	}
	if _, err = s.runs.Start(ctx, s.Host, recordedRun, time.Now().Add(asleep)); err == nil {
		err = s.Evicted(ctx)
	}
	if err == nil {
		e.begin()
		_, err = s.runs.Wait(ctx, s.Host, recordedRun)
		e.end()
	}
	return e.runs(db, s.Host, sleepersClass, 3, err)
}

// inKeys are the places of sub in the keys of a batch. In values and between rows its bytes
// may stand by chance.
func inKeys(repr, sub []byte) (at []int, err error) {
	from := 0
	err = engine.ReadBatch(repr, func(r engine.Record) {
		from += bytes.Index(repr[from:], r.Key)
		for _, i := range places(r.Key, sub) {
			at = append(at, from+i)
		}
		from += len(r.Key)
	})
	return at, err
}

// places are where sub stands in b.
func places(b, sub []byte) (at []int) {
	for from := 0; ; {
		i := bytes.Index(b[from:], sub)
		if i < 0 {
			return at
		}
		at = append(at, from+i)
		from += i + len(sub)
	}
}

// Run commits the batches of a run, one after another.
func (r *RawRuns) Run(int) error {
	i := int(r.next.Add(1))
	for b := range r.batches {
		if err := r.commit(b, i); err != nil {
			return err
		}
	}
	return nil
}

// Step commits the row of a step.
func (r *RawRuns) Step(int) error { return r.commit(1, int(r.next.Add(1))) }

// commit commits a batch of run i and waits for the disk.
func (r *RawRuns) commit(batch, i int) error {
	from := &r.batches[batch]
	b := r.DB.NewBatchWithSize(len(from.repr))
	repr := append(b.Repr()[:0], from.repr...)
	var name [8]byte
	digits := strconv.AppendInt(name[:0], int64(i), 36)
	for _, at := range from.names {
		copy(repr[at:], digits)
	}
	for _, at := range from.number {
		binary.BigEndian.PutUint64(repr[at:], uint64(i))
	}
	err := b.SetRepr(repr)
	if err == nil {
		err = b.Commit(pebble.Sync)
	}
	if err == nil {
		err = b.Close()
	}
	return err
}

// recorder is an engine that keeps the batches that are applied to it between begin and end.
type recorder struct {
	engine.Engine
	mu      sync.Mutex
	records bool
	batches [][]byte
}

// options are those of a host over the engine.
func (r *recorder) options() object.Options {
	return object.Options{Storage: storage.Options{Engine: r}}
}

// Apply keeps a copy of the batch, and applies it.
func (r *recorder) Apply(repr []byte) error {
	r.mu.Lock()
	if r.records {
		r.batches = append(r.batches, bytes.Clone(repr))
	}
	r.mu.Unlock()
	return r.Engine.Apply(repr)
}

func (r *recorder) begin() { r.record(true) }
func (r *recorder) end()   { r.record(false) }

func (r *recorder) record(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = on
}

// runs closes the host, which has one run of the class, and makes the reference of the
// batches that change the rows of the run. Those that announce a group of alarms do not.
func (r *recorder) runs(db *pebble.DB, h *Host, class string, want int, err error) (*RawRuns, error) {
	var number storage.Number
	if err == nil {
		err = h.Store().Objects(class, "", func(o storage.Object) bool { number = o.Number; return false })
	}
	if err = join(err, h.Close); err != nil {
		return nil, err
	}
	runs, key := &RawRuns{DB: db}, binary.BigEndian.AppendUint64(nil, uint64(number))
	for _, b := range r.batches {
		to := recorded{repr: b, names: places(b, []byte(recordedRun))}
		if to.number, err = inKeys(b, key); err != nil {
			return nil, err
		}
		if len(to.number) > 0 {
			runs.batches = append(runs.batches, to)
		}
	}
	if len(runs.batches) != want {
		return nil, fmt.Errorf("a run of %s has made %d batches, want %d", class, len(runs.batches), want)
	}
	return runs, nil
}

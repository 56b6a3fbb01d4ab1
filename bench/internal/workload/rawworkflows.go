package workload

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// recordedRun is the id of the run whose batches are recorded, as long as a Name.
const recordedRun = "########"

// RawRuns is the reference of Steps: the batches of a run, as a host has committed them, in
// bare Pebble. Each run gets the name and the number of an object of its own.
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
	s, err := OpenSteps("", 1, object.Options{Storage: storage.Options{Engine: e}})
	if err != nil {
		return nil, err
	}
	before := e.taken()
	err = s.RunAs(recordedRun, steps)
	batches := e.taken()[len(before):]
	var number storage.Number
	if err == nil {
		err = s.Store().Objects(StepsClass, "", func(o storage.Object) bool { number = o.Number; return false })
	}
	if err = join(err, s.Close); err != nil {
		return nil, err
	}
	if len(batches) != steps+1 {
		return nil, fmt.Errorf("a run of %d steps has made %d batches", steps, len(batches))
	}
	r := &RawRuns{DB: db}
	key := binary.BigEndian.AppendUint64(nil, uint64(number))
	for _, b := range batches {
		to := recorded{repr: b, names: places(b, []byte(recordedRun))}
		if to.number, err = inKeys(b, key); err != nil {
			return nil, err
		}
		r.batches = append(r.batches, to)
	}
	return r, nil
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

// recorder is an engine that keeps the batches that are applied to it.
type recorder struct {
	engine.Engine
	mu      sync.Mutex
	batches [][]byte
}

// Apply keeps a copy of the batch, and applies it.
func (r *recorder) Apply(repr []byte) error {
	r.mu.Lock()
	r.batches = append(r.batches, bytes.Clone(repr))
	r.mu.Unlock()
	return r.Engine.Apply(repr)
}

// taken are the batches that were applied so far.
func (r *recorder) taken() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.batches[:len(r.batches):len(r.batches)]
}

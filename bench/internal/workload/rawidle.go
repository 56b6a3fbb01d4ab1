package workload

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
)

// RawIdle is the reference of a cold activation: the reads that it needs, of rows
// that lie in bare Pebble.
type RawIdle struct {
	db   *pebble.DB
	keys [][2][]byte // header and alarm row of each object
}

// NewRawIdle writes the rows of some idle objects.
func NewRawIdle(db *pebble.DB, objects int) (*RawIdle, error) {
	r := &RawIdle{db: db}
	for i := range objects {
		id := storage.ID{Class: idle.Name(), Name: Name(i)}
		o := storage.Object{ID: id, Shard: storage.ShardOf(id, storage.DefaultShards), Number: storage.Number(1<<32 | (i + 1)), Epoch: 1}
		var b storage.Batch
		b.SetHeader(o)
		b.SetData(o, "k", []byte("value"))
		header, alarm := []byte(nil), []byte(nil)
		err := engine.ReadBatch(b.Repr(), func(rec engine.Record) {
			if header == nil {
				header = bytes.Clone(rec.Key)
				return
			}
			alarm = bytes.Clone(rec.Key[:len(rec.Key)-1])
			alarm[len(alarm)-1] = subAlarm
		})
		if err == nil {
			err = raw.Commit(db, &b, pebble.NoSync)
		}
		if err != nil {
			return nil, err
		}
		r.keys = append(r.keys, [2][]byte{header, alarm})
	}
	return r, db.Flush()
}

// subAlarm is the sub-kind of an alarm row; FORMAT.md has the table.
const subAlarm = 1

// Read looks up the header of object i modulo their number, and its alarm, which
// it does not have.
func (r *RawIdle) Read(i int) error {
	for n, key := range r.keys[i%len(r.keys)] {
		_, closer, err := r.db.Get(key)
		switch {
		case n == 1 && errors.Is(err, pebble.ErrNotFound):
		case err != nil:
			return err
		default:
			if err := closer.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

package workload

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// Fill says how Make fills a store.
type Fill struct {
	Class   string
	Objects int
	// Value is stored under the key "n" of each object. Nil: the object has an
	// alarm only.
	Value []byte
	// First is when the alarm of object 0 is due, Step how much later that of the
	// next one is. Zero: no alarms.
	First time.Time
	Step  time.Duration
}

// Make makes a store in dir with many objects, as though each had been made by a
// call. It writes sorted tables and gives them to Pebble, so it takes a few
// microseconds an object; memory is bounded by one shard at a time and 4 bytes an
// object.
func Make(ctx context.Context, dir string, f Fill) error {
	store, err := storage.Open(storage.Options{Dir: dir}) // its epoch, 1, is that of all objects
	if err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return err
	}
	engine, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		return err
	}
	tables, err := os.MkdirTemp(filepath.Dir(dir), "tables-")
	if err != nil {
		return join(err, engine.Close)
	}
	defer os.RemoveAll(tables)
	paths, err := f.tables(ctx, tables)
	if err == nil {
		err = Database(engine).Ingest(ctx, paths)
	}
	return join(err, engine.Close)
}

// Database is the Pebble database of an engine.
func Database(e engine.Engine) *pebble.DB { return e.(interface{ DB() *pebble.DB }).DB() }

func (f Fill) id(i uint32) storage.ID { return storage.ID{Class: f.Class, Name: Name(int(i))} }

// tables writes one table for each shard that has an object.
func (f Fill) tables(ctx context.Context, dir string) ([]string, error) {
	members := make([][]uint32, storage.DefaultShards)
	for i := range uint32(f.Objects) {
		shard := storage.ShardOf(f.id(i), storage.DefaultShards)
		members[shard] = append(members[shard], i)
	}
	paths := make([]string, storage.DefaultShards)
	err := measure.Each(ctx, 2, storage.DefaultShards, func(shard int) error {
		if len(members[shard]) == 0 {
			return nil
		}
		paths[shard] = filepath.Join(dir, fmt.Sprintf("%d.sst", shard))
		return f.table(paths[shard], shard, members[shard])
	})
	full := paths[:0]
	for _, p := range paths {
		if p != "" {
			full = append(full, p)
		}
	}
	return full, err
}

// table writes the rows of a shard. Numbers, names and due times of objects all
// grow with i, so the rows of each kind are in order as they come.
func (f Fill) table(path string, shard int, members []uint32) error {
	file, err := vfs.Default.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(file), tableOptions())
	if err := f.write(w, shard, members); err != nil {
		return join(err, w.Close)
	}
	return w.Close()
}

// write passes the kinds in their order: headers, rows, the index of alarms.
func (f Fill) write(w *sstable.Writer, shard int, members []uint32) error {
	passes := []func(b *storage.Batch, o storage.Object, i uint32){
		func(b *storage.Batch, o storage.Object, _ uint32) { b.SetHeader(o) },
		f.rows,
		f.index,
	}
	var b storage.Batch
	for _, pass := range passes {
		for _, i := range members {
			b.Reset()
			pass(&b, storage.Object{ID: f.id(i), Shard: shard, Number: storage.Number(1<<32 | uint64(i+1)), Epoch: 1}, i)
			var failed error
			err := engine.ReadBatch(b.Repr(), func(r engine.Record) {
				if failed == nil {
					failed = w.Set(r.Key, r.Value)
				}
			})
			if err != nil || failed != nil {
				return fmt.Errorf("write a table: %w", firstOf(err, failed))
			}
		}
	}
	return nil
}

// Object is a batch with all rows of object i, as its first turn commits them.
func (f Fill) Object(i int) *storage.Batch {
	id := f.id(uint32(i))
	o := storage.Object{ID: id, Shard: storage.ShardOf(id, storage.DefaultShards), Number: storage.Number(1<<32 | uint64(i+1)), Epoch: 1}
	b := &storage.Batch{}
	b.SetHeader(o)
	f.rows(b, o, uint32(i))
	f.index(b, o, uint32(i))
	return b
}

func (f Fill) rows(b *storage.Batch, o storage.Object, i uint32) {
	if !f.First.IsZero() {
		f.alarm(b, o, i, false)
	}
	if f.Value != nil {
		b.SetData(o, "n", f.Value)
	}
}

func (f Fill) index(b *storage.Batch, o storage.Object, i uint32) {
	if !f.First.IsZero() {
		f.alarm(b, o, i, true)
	}
}

// alarm adds the alarm row, or its entry in the index: MoveAlarm writes the two
// of them, and they lie apart in the table.
func (f Fill) alarm(b *storage.Batch, o storage.Object, i uint32, index bool) {
	const kindAt, kindIndex = 2, 3
	due, gen := f.First.Add(time.Duration(i)*f.Step), uint64(1<<32|uint64(i+1))
	at := alarm.Nanos(due)
	var both storage.Batch
	row := alarm.AppendRow(nil, alarm.Row{Due: due, Gen: gen, Scheduled: due})
	both.MoveAlarm(o, nil, &at, row, alarm.AppendIndex(nil, gen, o.ID.Class, o.ID.Name))
	// The batch was made here: it can be read.
	_ = engine.ReadBatch(both.Repr(), func(r engine.Record) {
		if (r.Key[kindAt] == kindIndex) == index {
			b.Set(r.Key, r.Value)
		}
	})
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Number8 is a counter's value as it is stored.
func Number8(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

package workload

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/journal"
	"github.com/holdfast-dev/holdfast/storage"
)

// sum is an object whose journal has numbers as events and their sum as its state.
type sum struct {
	j *journal.Journal[int, int]
}

var (
	sums = object.Define("sum", func(ctx context.Context, st *object.State) (*sum, error) {
		j, err := journal.Attach(ctx, st, journal.Options[int, int]{Apply: func(s, n int) (int, error) { return s + n, nil }})
		return &sum{j}, err
	})
	appendSum = object.Handle(sums, "append", func(s *sum, ctx context.Context, n int) (int, error) {
		err := s.j.Append(ctx, n)
		return s.j.State(), err
	})
	fillSum = object.Handle(sums, "fill", func(s *sum, ctx context.Context, n int) (int, error) {
		events := make([]int, n)
		err := s.j.Append(ctx, events...)
		return s.j.State(), err
	})
	readSum = object.Handle(sums, "read", func(s *sum, _ context.Context, _ struct{}) (int, error) { return s.j.State(), nil })
)

// Journals is a host with objects that are journals. The operations take the number of the
// object, modulo how many there are.
type Journals struct {
	*Host
	names []string
	ctx   context.Context
}

// OpenJournals opens a host with some journals, of which at most live are in memory.
func OpenJournals(dir string, objects, live int) (*Journals, error) {
	h, err := OpenHost(dir, object.Options{MaxLive: live, IdleAfter: time.Hour}, sums)
	return &Journals{h, Names(objects), context.Background()}, err
}

// Append appends an event, durably.
func (j *Journals) Append(i int) error {
	_, err := appendSum.Call(j.ctx, j.Host, j.names[i%len(j.names)], 7)
	return err
}

// Fill appends so many events to each journal, which are fewer than a snapshot waits for.
func (j *Journals) Fill(ctx context.Context, events int) error {
	err := measure.Each(ctx, 64, len(j.names), func(i int) error {
		_, err := fillSum.Call(ctx, j.Host, j.names[i], events, object.Unconfirmed())
		return err
	})
	if err != nil {
		return err
	}
	return j.Durable()
}

// Read reads the state, which activates a journal that is not in memory.
func (j *Journals) Read(i int) error {
	_, err := readSum.Call(j.ctx, j.Host, j.names[i%len(j.names)], struct{}{})
	return err
}

// The rows of a journal of numbers; FORMAT.md has the table. The time is of as many bytes as
// that of today.
func eventKey(n uint64) string    { return string(binary.BigEndian.AppendUint64([]byte("\x00e/"), n)) }
func snapshotKey(n uint64) string { return string(binary.BigEndian.AppendUint64([]byte("\x00e!"), n)) }

var (
	eventRow    = append(binary.AppendVarint([]byte{1, 0}, 1_800_000_000_000_000_000), '7')
	snapshotRow = append([]byte{1, 0, 100, 101}, "700"...)
)

// snapshotEvery is the default of the journal.
const snapshotEvery = 100

// JournalRows puts the rows of an append into a batch: the event, and at every 100th the
// snapshot and the removal of the rows before it.
func JournalRows(b *storage.Batch, o storage.Object, n uint64) {
	b.SetData(o, eventKey(n), eventRow)
	if n%snapshotEvery != 0 {
		return
	}
	b.SetData(o, snapshotKey(n), snapshotRow)
	b.DeleteData(o, snapshotKey(n-snapshotEvery))
	for seq := n - snapshotEvery + 1; seq <= n; seq++ {
		b.DeleteData(o, eventKey(seq))
	}
}

// RawJournals is the reference of an activation: the rows of journals in bare Pebble.
type RawJournals struct {
	*RawIdle
	objects []storage.Object
}

// NewRawJournals writes the rows of some journals with so many events.
func NewRawJournals(db *pebble.DB, objects, events int) (*RawJournals, error) {
	idle, err := NewRawIdle(db, objects)
	r := &RawJournals{RawIdle: idle}
	for i := 0; err == nil && i < objects; i++ {
		id := storage.ID{Class: sums.Name(), Name: Name(i)}
		o := storage.Object{ID: id, Shard: storage.ShardOf(id, storage.DefaultShards), Number: storage.Number(2<<32 | (i + 1)), Epoch: 1}
		r.objects = append(r.objects, o)
		var b storage.Batch
		for n := range events {
			b.SetData(o, eventKey(uint64(n+1)), eventRow)
		}
		err = raw.Commit(db, &b, pebble.NoSync)
	}
	if err != nil {
		return nil, err
	}
	return r, db.Flush()
}

// Read looks up the header and the alarm of journal i modulo their number, and reads all its
// rows.
func (r *RawJournals) Read(i int) error {
	if err := r.RawIdle.Read(i); err != nil {
		return err
	}
	o := r.objects[i%len(r.objects)]
	prefix := binary.BigEndian.AppendUint16(nil, uint16(o.Shard))
	prefix = append(prefix, 2)
	prefix = binary.BigEndian.AppendUint64(prefix, uint64(o.Number))
	it, err := r.db.NewIter(&pebble.IterOptions{LowerBound: append(prefix[:11:11], 2), UpperBound: append(prefix[:11:11], 3)})
	if err != nil {
		return err
	}
	for it.First(); it.Valid(); it.Next() {
		if _, err := it.ValueAndErr(); err != nil {
			return err
		}
	}
	return it.Close()
}

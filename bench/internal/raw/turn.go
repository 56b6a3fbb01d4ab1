package raw

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/storage"
)

// Turns is the bare turn loop: the least that durable turns can be.
type Turns struct {
	db      *pebble.DB
	objects []turn
}

type turn struct {
	mu  sync.Mutex
	key []byte
	n   uint64
	b   storage.Batch // of Rows
}

// NewTurns makes a loop over some objects.
func NewTurns(db *pebble.DB, objects int) *Turns {
	t := &Turns{db: db, objects: make([]turn, objects)}
	for i := range t.objects {
		t.objects[i].key = fmt.Appendf(nil, "object-%08d/n", i)
	}
	return t
}

// Increment is one turn of object i modulo their number: a mutex, a number in
// memory, a batch of one key applied without waiting, and the wait for the sync
// outside the mutex.
func (t *Turns) Increment(i int) error {
	o := &t.objects[i%len(t.objects)]
	b := t.db.NewBatch()
	o.mu.Lock()
	o.n++
	var v [8]byte
	binary.BigEndian.PutUint64(v[:], o.n)
	err := b.Set(o.key, v[:], nil)
	return t.finish(o, b, err)
}

// Rows is one turn of object i modulo their number that stores the rows of a
// storage.Batch instead. The function that puts them there gets the object's place
// and which of its turns this is, and runs alone for the object.
func (t *Turns) Rows(i int, rows func(b *storage.Batch, o storage.Object, n uint64)) error {
	i %= len(t.objects)
	o := &t.objects[i]
	o.mu.Lock()
	o.n++
	o.b.Reset()
	id := storage.ID{Class: "object", Name: string(o.key)}
	rows(&o.b, storage.Object{ID: id, Shard: i % storage.DefaultShards, Number: storage.Number(i + 1), Epoch: 1}, o.n)
	b := t.db.NewBatchWithSize(o.b.Len())
	err := b.SetRepr(append(b.Repr()[:0], o.b.Repr()...))
	return t.finish(o, b, err)
}

// finish applies b, unlocks the object, and waits for the sync.
func (t *Turns) finish(o *turn, b *pebble.Batch, err error) error {
	if err == nil {
		err = t.db.ApplyNoSyncWait(b, pebble.Sync)
	}
	o.mu.Unlock()
	if err == nil {
		err = b.SyncWait()
	}
	if err == nil {
		err = b.Close()
	}
	return err
}

// Commit is one synced commit of a key of 8 bytes, alone.
func (t *Turns) Commit(i int) error {
	o := &t.objects[i%len(t.objects)]
	var v [8]byte
	binary.BigEndian.PutUint64(v[:], uint64(i))
	return t.db.Set(o.key, v[:], pebble.Sync)
}

// Get reads the key of object i modulo their number, and copies it.
func (t *Turns) Get(i int) ([]byte, error) {
	v, closer, err := t.db.Get(t.objects[i%len(t.objects)].key)
	if err != nil {
		return nil, err
	}
	v = append([]byte(nil), v...)
	return v, closer.Close()
}

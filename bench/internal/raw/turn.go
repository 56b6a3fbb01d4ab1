package raw

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"
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

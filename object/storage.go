package object

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/storage"
)

// Storage is an object's own keyspace; no call can name a key of another object. Its
// methods need the context of the present turn. Reads see the turn's own writes, and
// writes are stored with the turn's commit.
//
// An error of the store ends the host, even if the handler ignores it. Goroutines of a
// handler must use the Storage one at a time, because the turn has one batch and no mutex.
// A handler waits for its goroutines before it returns: a call at the very moment of the
// return is a data race.
type Storage struct {
	state *State
	tx    *transaction // nil outside of a transaction
}

// Entry is a key and the value to store under it.
type Entry struct {
	Key   string
	Value any
}

// Item is a stored key and its bytes.
type Item struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

// begin returns the present turn if ctx belongs to it, as State.turn does, and returns
// ErrTxDone if the Storage is the view of a transaction that has ended.
func (s *Storage) begin(ctx context.Context) (*turn, error) {
	if s.tx != nil && s.tx.done {
		return nil, named(s.state.act.object.ID, ErrTxDone)
	}
	return s.state.turn(ctx)
}

// host returns the host of the object.
func (s *Storage) host() *Host { return s.state.act.host }

// Get returns a copy of the bytes under key; ok is false if there are none.
func (s *Storage) Get(ctx context.Context, key string) (value []byte, ok bool, err error) {
	t, err := s.begin(ctx)
	if err != nil {
		return nil, false, err
	}
	return s.get(t, key)
}

// get reads a key as the turn sees it: from its batch, or else from the store.
func (s *Storage) get(t *turn, key string) ([]byte, bool, error) {
	value, ok, err := s.host().store.Data(t.batch, *t.object, key)
	if err := s.state.reading(err); err != nil {
		return nil, false, err
	}
	return value, ok, nil
}

// GetInto decodes the value under key into the variable that v points to, with the host's
// codec, and reports whether there was a value. If there was none, the variable is left
// alone, so it may hold a default. An error of the codec names the key.
func (s *Storage) GetInto(ctx context.Context, key string, v any) (ok bool, err error) {
	value, ok, err := s.Get(ctx, key)
	if err != nil || !ok {
		return false, err
	}
	if err := s.host().options.Codec.Decode(value, v); err != nil {
		return false, fmt.Errorf("%s: decode key %q: %w", s.state.act.object.ID, key, err)
	}
	return true, nil
}

// GetBatch returns the bytes under those of the keys that are stored, by key. It reads one
// key after the other.
func (s *Storage) GetBatch(ctx context.Context, keys ...string) (map[string][]byte, error) {
	t, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	found := make(map[string][]byte, len(keys))
	for _, key := range keys {
		value, ok, err := s.get(t, key)
		if err != nil {
			return nil, err
		}
		if ok {
			found[key] = value
		}
	}
	return found, nil
}

// Put stores v, encoded by the host's codec, under key. It returns
// ErrKeyTooLarge, ErrValueTooLarge or ErrBatchTooLarge, and then changes nothing.
func (s *Storage) Put(ctx context.Context, key string, v any) error {
	value, err := s.encode(key, v)
	if err != nil {
		return err
	}
	return s.PutBytes(ctx, key, value)
}

// PutBytes stores the bytes of value under key, with the errors of Put.
func (s *Storage) PutBytes(ctx context.Context, key string, value []byte) error {
	t, err := s.begin(ctx)
	if err != nil {
		return err
	}
	if err := s.check(t, len(key)+len(value), key, value); err != nil {
		return err
	}
	t.put(key, value)
	return nil
}

// PutBatch stores all entries or none: each key and value is checked before the
// first is written.
func (s *Storage) PutBatch(ctx context.Context, entries []Entry) error {
	t, err := s.begin(ctx)
	if err != nil {
		return err
	}
	values := make([][]byte, len(entries))
	total := 0
	for i, e := range entries {
		if values[i], err = s.encode(e.Key, e.Value); err != nil {
			return err
		}
		total += len(e.Key) + len(values[i])
		if err := s.check(t, total, e.Key, values[i]); err != nil {
			return err
		}
		total += recordBytes
	}
	for i, e := range entries {
		t.put(e.Key, values[i])
	}
	return nil
}

// encode encodes a value by the host's codec. Its error names the object and the key.
func (s *Storage) encode(key string, v any) ([]byte, error) {
	value, err := s.host().options.Codec.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("%s: encode key %q: %w", s.state.act.object.ID, key, err)
	}
	return value, nil
}

// recordBytes is the most that a record of a batch takes beside the user's key and value:
// its kind, the lengths of both, and the prefix of the row's key.
const recordBytes = 24

// check returns the error of a write that passes a limit, or nil: of the key, the value or
// all that the turn writes (S7). addBytes is how much the write adds to the batch, without
// the recordBytes of its last record. A write that passes the check never fails later for
// its size, because the rows that the runtime adds at the commit do not count.
func (s *Storage) check(t *turn, addBytes int, key string, value []byte) error {
	o, id := &s.host().options, s.state.act.object.ID
	switch {
	case len(key) > o.MaxKeyBytes:
		return fmt.Errorf("%s: %w: %d bytes, the limit is %d", id, ErrKeyTooLarge, len(key), o.MaxKeyBytes)
	case len(value) > o.MaxValueBytes:
		// A copy of the key is given away, so that keys need no memory in the usual case.
		return fmt.Errorf("%s: %w: key %q, %d bytes, the limit is %d", id, ErrValueTooLarge, strings.Clone(key), len(value), o.MaxValueBytes)
	case t.written()+addBytes+recordBytes > o.MaxBatchBytes:
		return fmt.Errorf("%s: %w: more than %d bytes", id, ErrBatchTooLarge, o.MaxBatchBytes)
	}
	return nil
}

// written returns how many bytes the turn has written since its last commit.
func (t *turn) written() int {
	if t.batch == nil {
		return 0
	}
	return t.batch.Len()
}

// put adds a key to the turn's batch. check has passed it.
func (t *turn) put(key string, value []byte) {
	t.write()
	t.batch.SetData(*t.object, key, value)
	t.writes.adds = true
}

// Delete removes key and reports whether it was stored. It reads the key for that; Remove
// does not.
func (s *Storage) Delete(ctx context.Context, key string) (bool, error) {
	n, err := s.DeleteBatch(ctx, key)
	return n == 1, err
}

// DeleteBatch removes the keys and returns how many of them were stored. After an error
// some of them may be removed, which the caller takes back by failing the turn.
func (s *Storage) DeleteBatch(ctx context.Context, keys ...string) (int, error) {
	t, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, key := range keys {
		_, ok, err := s.get(t, key)
		if err != nil {
			return n, err
		}
		if !ok {
			continue
		}
		if err := s.check(t, len(key), "", nil); err != nil {
			return n, err
		}
		n++
		t.write()
		t.batch.DeleteData(*t.object, key)
		t.writes.removes = true
	}
	return n, nil
}

// Remove removes the keys without a read. A key that is not stored costs a record in the
// batch all the same.
func (s *Storage) Remove(ctx context.Context, keys ...string) error {
	t, err := s.begin(ctx)
	if err != nil || t.object.Number == 0 {
		return err
	}
	for _, key := range keys {
		if err := s.check(t, len(key), "", nil); err != nil {
			return err
		}
		t.write()
		t.batch.DeleteData(*t.object, key)
		t.writes.removes = true
	}
	return nil
}

// DeletePrefix removes every key that begins with prefix; the empty prefix removes all.
// Many keys are removed as one range, so their number does not count against
// Options.MaxBatchBytes.
func (s *Storage) DeletePrefix(ctx context.Context, prefix string) error {
	t, err := s.begin(ctx)
	if err != nil {
		return err
	}
	return s.deleteRange(ctx, t, prefix, storage.PrefixEnd(prefix))
}

// deleteRange deletes the keys in [lower, upper); an empty upper is no bound. DeleteDataRange deletes
// few keys one by one and many as a range. If the few are too many bytes for the batch,
// for example because their keys are long, they too are removed as a range.
func (s *Storage) deleteRange(ctx context.Context, t *turn, lower, upper string) error {
	if t.object.Number == 0 {
		return nil
	}
	h, b := s.host(), t.write()
	start := b.Savepoint()
	if err := h.store.DeleteDataRange(b, *t.object, lower, upper); err != nil {
		return h.storageError(t.act.object.ID, err)
	}
	if b.Len() > h.options.MaxBatchBytes { // the keys one by one are too many bytes
		b.Rollback(start)
		if err := s.check(t, len(lower)+recordBytes+len(upper), "", nil); err != nil {
			return err
		}
		b.DeleteDataRange(*t.object, lower, upper)
	}
	t.writes.removes = true
	if s.state.caches == nil {
		return nil
	}
	return s.state.reload(ctx, t, lower, upper, nil)
}

// DeleteAll removes all keys and the alarm. An alarm set after it in the same
// turn stays.
func (s *Storage) DeleteAll(ctx context.Context) error {
	t, err := s.begin(ctx)
	if err != nil {
		return err
	}
	if err := s.deleteRange(ctx, t, "", ""); err != nil {
		return err
	}
	return s.state.deleteAlarm(t)
}

// transaction is a part of a turn that can be undone by itself. done is set when its
// function has returned.
type transaction struct{ done bool }

// Transaction runs fn with a view of the storage. If fn returns an error or panics, the
// turn's writes since Transaction began are undone, the alarm and the events among them,
// and the error is returned. Earlier writes stay, and the object's fields are not changed
// back, except for those that a package keeps by Driver.CacheRows. For example, a handler tries a booking in a Transaction and notes in the same turn
// that it failed.
//
// Transactions nest. After fn has ended, the view returns ErrTxDone. Sync and Release fail
// in a transaction, because they would commit a part of it.
func (s *Storage) Transaction(ctx context.Context, fn func(ctx context.Context, tx *Storage) error) (err error) {
	t, err := s.begin(ctx)
	if err != nil {
		return err
	}
	tx := &transaction{}
	start, complete := t.beginPart(), false
	defer func() {
		tx.done = true
		err = t.endPart(ctx, start, complete, err)
	}()
	err = fn(ctx, &Storage{state: s.state, tx: tx})
	complete = true
	return err
}

// savepoint is a place in a turn to which rollback can return: the length of the batch, and
// copies of writes, after and label.
type savepoint struct {
	batch  storage.Savepoint
	length int // of the batch, in bytes
	writes writes
	after  *afterwards
	label  storage.Label
}

// beginPart begins a part of the turn that can be undone by itself.
func (t *turn) beginPart() savepoint {
	at := savepoint{length: t.written(), writes: t.writes, after: t.after, label: t.object.Label}
	if t.batch != nil {
		at.batch = t.batch.Savepoint()
	}
	t.txs++
	return at
}

// endPart ends a part of the turn, and undoes it if it is not complete or has an error. Then
// it has the rows read again that the instance keeps in memory (see Driver.CacheRows). It
// returns the error.
func (t *turn) endPart(ctx context.Context, start savepoint, complete bool, err error) error {
	if !t.grasp() { // the part runs on a goroutine that has outlived the turn
		return errors.Join(err, t.state.inTurn(t))
	}
	if undone := (!complete || err != nil) && t.rollback(start); undone && t.state.caches != nil {
		t.letGo()
		err = t.state.reload(ctx, t, "", "", err)
		if !t.grasp() {
			return err
		}
	}
	defer t.letGo()
	t.txs--
	return err
}

// rollback undoes the turn's writes since start, and reports whether there were records to
// cut off. The caller has grasped the turn.
func (t *turn) rollback(start savepoint) bool {
	if t.state.err() != nil {
		return false // a block has failed and dropped all writes of the turn
	}
	undone := t.written() != start.length
	if t.batch != nil {
		t.batch.Rollback(start.batch)
	}
	t.writes, t.after = start.writes, start.after
	if t.object.Label != start.label {
		t.change().Label = start.label
	}
	t.forgetMarked()
	return undone
}

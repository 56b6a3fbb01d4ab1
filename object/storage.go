package object

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/storage"
)

// Storage is an object's own keyspace; no call can name a key of another object.
// Its methods belong to one turn, whose context they need; reads see the turn's
// own writes, and writes become stored with the turn's commit. Errors of the
// store end the host, whatever the handler does with them.
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

// begin checks that ctx may use the storage.
func (s *Storage) begin(ctx context.Context) (*turn, error) {
	if s.tx != nil && s.tx.done {
		return nil, named(s.state.act.id, ErrTxDone)
	}
	return s.state.turn(ctx)
}

func (s *Storage) host() *Host { return s.state.act.hosted.host }

// Get returns the bytes under key; ok is false if there are none.
func (s *Storage) Get(ctx context.Context, key string) (value []byte, ok bool, err error) {
	t, err := s.begin(ctx)
	if err != nil {
		return nil, false, err
	}
	return s.get(t, key)
}

func (s *Storage) get(t *turn, key string) ([]byte, bool, error) {
	value, ok, err := s.host().store.Data(t.batch, *t.object, key)
	if err := s.state.reading(err); err != nil {
		return nil, false, err
	}
	return value, ok, nil
}

// GetInto decodes the value under key into what v points to, and reports whether
// there was one; if not, v is left alone.
func (s *Storage) GetInto(ctx context.Context, key string, v any) (ok bool, err error) {
	value, ok, err := s.Get(ctx, key)
	if err != nil || !ok {
		return false, err
	}
	if err := s.host().options.Codec.Decode(value, v); err != nil {
		return false, fmt.Errorf("%s: decode key %q: %w", s.state.act.id, key, err)
	}
	return true, nil
}

// GetBatch returns the bytes under those of the keys that are stored.
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

func (s *Storage) encode(key string, v any) ([]byte, error) {
	value, err := s.host().options.Codec.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("%s: encode key %q: %w", s.state.act.id, key, err)
	}
	return value, nil
}

// recordBytes is the most that a record of a batch has beside the user's key and
// value: its kind, the lengths of both, and what comes before the user's key.
const recordBytes = 24

// check returns why a key and value cannot be written by a turn that adds
// addBytes in all, without the recordBytes of the last record (S7). A write that
// passes commits: the rows that the runtime adds at the commit do not count.
func (s *Storage) check(t *turn, addBytes int, key string, value []byte) error {
	o, id := &s.host().options, s.state.act.id
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

// written is the size of what the turn has written since its last commit.
func (t *turn) written() int {
	if t.batch == nil {
		return 0
	}
	return t.batch.Len()
}

func (t *turn) put(key string, value []byte) {
	t.write()
	t.batch.SetData(*t.object, key, value)
	t.writes.adds = true
}

// Delete removes key and reports whether it was stored.
func (s *Storage) Delete(ctx context.Context, key string) (bool, error) {
	n, err := s.DeleteBatch(ctx, key)
	return n == 1, err
}

// DeleteBatch removes the keys and returns how many of them were stored.
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

// Remove removes the keys without looking whether they are stored.
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

// DeletePrefix removes every key that begins with prefix.
func (s *Storage) DeletePrefix(ctx context.Context, prefix string) error {
	t, err := s.begin(ctx)
	if err != nil {
		return err
	}
	return s.clear(t, prefix, storage.PrefixEnd(prefix))
}

// clear removes the keys in [lower, upper).
func (s *Storage) clear(t *turn, lower, upper string) error {
	if t.object.Number == 0 {
		return nil
	}
	h, b := s.host(), t.write()
	start := b.Savepoint()
	if err := h.store.ClearData(b, *t.object, lower, upper); err != nil {
		return h.storageError(t.act.id, err)
	}
	if b.Len() > h.options.MaxBatchBytes { // the keys one by one are too many bytes
		b.Rollback(start)
		if err := s.check(t, len(lower)+recordBytes+len(upper), "", nil); err != nil {
			return err
		}
		b.DeleteDataRange(*t.object, lower, upper)
	}
	t.writes.removes = true
	return nil
}

// DeleteAll removes all keys and the alarm. An alarm set after it in the same
// turn stays.
func (s *Storage) DeleteAll(ctx context.Context) error {
	t, err := s.begin(ctx)
	if err != nil {
		return err
	}
	if err := s.clear(t, "", ""); err != nil {
		return err
	}
	return s.state.DeleteAlarm(ctx)
}

// transaction is a part of a turn that can be undone by itself.
type transaction struct{ done bool }

// Transaction runs fn with a view of the storage. An error or a panic of fn
// undoes what was written since Transaction began, alarm included, and nothing
// else; the error is returned. Transactions nest. The view is of no use after fn
// has ended (ErrTxDone).
func (s *Storage) Transaction(ctx context.Context, fn func(ctx context.Context, tx *Storage) error) (err error) {
	t, err := s.begin(ctx)
	if err != nil {
		return err
	}
	tx := &transaction{}
	undo := t.savepoint()
	t.txs++
	complete := false
	defer func() {
		tx.done = true
		if !t.grasp() { // fn runs on a goroutine that has outlived the turn
			err = errors.Join(err, s.state.inTurn(t))
			return
		}
		defer t.letGo()
		t.txs--
		if !complete || err != nil {
			undo()
		}
	}()
	err = fn(ctx, &Storage{state: s.state, tx: tx})
	complete = true
	return err
}

// savepoint returns a function that undoes what the turn writes from here on.
func (t *turn) savepoint() (undo func()) {
	var at storage.Savepoint
	if t.batch != nil {
		at = t.batch.Savepoint()
	}
	writes, after := t.writes, t.after
	return func() {
		if t.life.err() != nil {
			return // a block has failed and dropped all that the turn wrote
		}
		if t.batch != nil {
			t.batch.Rollback(at)
		}
		t.writes, t.after = writes, after
		t.forgetMarked()
	}
}

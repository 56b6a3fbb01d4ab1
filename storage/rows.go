package storage

import (
	"encoding/binary"
	"errors"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// Object says where the rows of one life of an object are. It is a value that the
// runner of the object's turns keeps, so that a turn need not read the header again.
type Object struct {
	ID     ID
	Shard  int
	Number Number // 0: the object does not exist
	Epoch  uint64 // of the store's opening that committed the object's last turn
	Label  Label  // as the header has it
}

// ShardOf returns the shard of id in this store.
func (s *Store) ShardOf(id ID) int { return ShardOf(id, s.shards) }

// Find returns where the object id is; its Number is 0 if it does not exist. It reads
// one row, the header.
func (s *Store) Find(id ID) (Object, error) {
	o := Object{ID: id, Shard: s.ShardOf(id)}
	v, ok, err := s.get(headerKey(nil, o.Shard, id))
	if err != nil || !ok {
		return o, err
	}
	h, err := decodeHeader(v)
	if err != nil {
		return o, s.fail(err)
	}
	o.Number, o.Epoch, o.Label = h.number, h.epoch, h.label
	return o, nil
}

// For names the object that b changes, for the probe points of its commit.
func (b *Batch) For(id ID) { b.id = id }

// SetHeader makes the object exist, with o's number, epoch and label. Where the label
// changes, MoveLabel changes its row in the same batch.
func (b *Batch) SetHeader(o Object) {
	b.Set(headerKey(make([]byte, 0, keyRoom), o.Shard, o.ID), appendHeader(nil, header{o.Number, o.Epoch, o.Label}))
}

// DeleteObject removes the object: its header, label, keys, marks and open-execution mark,
// and its alarm. o.Label must be the stored one. due must be its present due time, or nil if
// it has no alarm. Store.DeleteObject does the same, and is better for an object of few rows.
func (b *Batch) DeleteObject(o Object, due *int64) {
	b.DeleteRange(rowKey(nil, o.Shard, o.Number, 0), rowKey(nil, o.Shard, o.Number, subEnd))
	b.Delete(openKey(nil, o.Shard, o.Number))
	b.deleteHeader(o, due)
}

// DeleteEmpty does what DeleteObject does for an object that has no keys, no marks
// and no open-execution mark.
func (b *Batch) DeleteEmpty(o Object, due *int64) {
	if due != nil {
		b.Delete(rowKey(nil, o.Shard, o.Number, subAlarm))
	}
	b.deleteHeader(o, due)
}

// deleteHeader removes the header, the row of the label if there is one, and the entry of
// the alarm due then, if any.
func (b *Batch) deleteHeader(o Object, due *int64) {
	b.MoveLabel(o, o.Label, Label{})
	b.Delete(headerKey(make([]byte, 0, keyRoom), o.Shard, o.ID))
	if due != nil {
		b.Delete(indexKey(nil, o.Shard, *due, o.Number))
	}
}

// DeleteObject does what Batch.DeleteObject does, row by row if the object has few.
func (s *Store) DeleteObject(b *Batch, o Object, due *int64) error {
	few, err := s.deleteFew(b, b, rowKey(nil, o.Shard, o.Number, 0), rowKey(nil, o.Shard, o.Number, subEnd))
	switch {
	case err != nil:
		return err
	case few:
		b.Delete(openKey(nil, o.Shard, o.Number))
		b.deleteHeader(o, due)
	default:
		b.DeleteObject(o, due)
	}
	return nil
}

// fewKeys is up to how many keys are deleted one by one: above it, one range delete
// costs less than the deletes that it stands for.
const fewKeys = 1024

// deleteRange deletes in b the keys in [lower, upper) as the batch view, which may be
// nil, leaves them: one by one if they are few.
func (s *Store) deleteRange(b, view *Batch, lower, upper []byte) error {
	few, err := s.deleteFew(b, view, lower, upper)
	if err == nil && !few {
		b.DeleteRange(lower, upper)
	}
	return err
}

// deleteFew does what deleteRange does if the keys are few, and reports whether they
// were; if not, it changes nothing. A range delete is one record, but as long as it
// is in memory it slows down every read of the store, and many of them do so by
// their number.
func (s *Store) deleteFew(b, view *Batch, lower, upper []byte) (few bool, err error) {
	it, err := s.iter(view, lower, upper, false, 0)
	if err != nil {
		return false, err
	}
	defer it.Close()
	start := b.Savepoint()
	for n := 0; it.Next(); n++ {
		if n == fewKeys {
			b.Rollback(start)
			return false, it.Close()
		}
		b.Delete(it.Key())
	}
	return true, it.Close()
}

// dataKey is the key of a user's key.
func dataKey(o Object, key string) []byte {
	return append(rowKey(make([]byte, 0, rowPrefixLen+len(key)), o.Shard, o.Number, subData), key...)
}

// Data returns a copy of the value of one of the object's keys as b, which may be nil,
// leaves it. An object that does not exist has no keys.
func (s *Store) Data(b *Batch, o Object, key string) (value []byte, ok bool, err error) {
	if o.Number == 0 {
		return nil, false, s.Err()
	}
	return s.read(b, dataKey(o, key))
}

// SetData sets one of the object's keys.
func (b *Batch) SetData(o Object, key string, value []byte) {
	b.openRow(engine.KindSet, o, subData, key)
	b.data = appendBytes(b.data, value)
}

// openRow begins a record of one of the object's rows. It returns its key, which
// is valid until the next change.
func (b *Batch) openRow(kind byte, o Object, sub byte, key string) []byte {
	n := rowPrefixLen + len(key)
	b.open(kind, n)
	b.data = append(rowKey(b.data, o.Shard, o.Number, sub), key...)
	return b.data[len(b.data)-n:]
}

// DeleteData removes one of the object's keys.
func (b *Batch) DeleteData(o Object, key string) { b.openRow(engine.KindDelete, o, subData, key) }

// DeleteDataRange removes the object's keys in [lower, upper), where an empty
// upper means no bound. Store.DeleteDataRange is better for few keys.
func (b *Batch) DeleteDataRange(o Object, lower, upper string) {
	low, high := dataRange(o, lower, upper)
	b.DeleteRange(low, high)
}

// DeleteDataRange does what Batch.DeleteDataRange does, key by key if they are few.
func (s *Store) DeleteDataRange(b *Batch, o Object, lower, upper string) error {
	low, high := dataRange(o, lower, upper)
	return s.deleteRange(b, b, low, high)
}

// dataRange is the range of the keys that hold the user's keys in [lower, upper).
func dataRange(o Object, lower, upper string) (low, high []byte) {
	if upper == "" {
		return dataKey(o, lower), rowKey(nil, o.Shard, o.Number, subData+1)
	}
	return dataKey(o, lower), dataKey(o, upper)
}

// ListData walks the object's keys in [lower, upper), where an empty upper means
// no bound, as b, which may be nil, leaves them. The keys it yields are the user's.
func (s *Store) ListData(b *Batch, o Object, lower, upper string, reverse bool) (*Iter, error) {
	low, high := dataRange(o, lower, upper)
	return s.iter(b, low, high, reverse, len(rowKey(nil, o.Shard, o.Number, subData)))
}

// WalkData calls f with each of the object's stored keys in [lower, upper), where an empty
// upper means no bound, until f returns false. It copies nothing, so key and value are valid
// during the call of f alone. For example, a list of keys takes no memory for their values.
func (s *Store) WalkData(o Object, lower, upper string, f func(key, value []byte) bool) error {
	low, high := dataRange(o, lower, upper)
	it, err := s.iter(nil, low, high, false, 0)
	if err != nil || it.base == nil {
		return err
	}
	for ok := it.base.First(); ok && it.err == nil; ok = it.base.Next() {
		value, err := it.base.ValueAndErr()
		if it.fail(err); it.err != nil || !f(it.base.Key()[rowPrefixLen:], value) {
			break
		}
		it.err = s.Err()
	}
	it.fail(it.base.Error())
	return it.Close()
}

// PrefixEnd returns the smallest string greater than all that begin with p, or
// "" if there is none.
func PrefixEnd(p string) string { return string(after([]byte(p))) }

// HasRows reports whether the object has any key or mark as b leaves it. It reads the
// store only if b sets none that stays. An object without rows ends: its header goes in
// the same batch (O1).
func (s *Store) HasRows(b *Batch, o Object) (bool, error) {
	lower, upper := rowKey(nil, o.Shard, o.Number, subData), rowKey(nil, o.Shard, o.Number, subEnd)
	if b != nil && b.sets(lower, upper) {
		return true, nil
	}
	it, err := s.iter(b, lower, upper, false, 0)
	if err != nil {
		return false, err
	}
	found := it.Next()
	return found, it.Close()
}

// Alarm returns the object's alarm row.
func (s *Store) Alarm(o Object) (row []byte, ok bool, err error) {
	if o.Number == 0 {
		return nil, false, s.Err()
	}
	return s.get(rowKey(nil, o.Shard, o.Number, subAlarm))
}

// MoveAlarm is called with both times to move an alarm, with from alone to clear it, and
// with to alone to set the first one. It replaces the object's alarm: the one due at from, if from is not
// nil, is gone, and the one due at to, if to is not nil, is stored with row and
// its entry in the time index with value index. It is the only way to change
// either, so that each row has exactly one entry and the reverse (A1). Times are
// nanoseconds since 1970 and positive.
func (b *Batch) MoveAlarm(o Object, from, to *int64, row, index []byte) {
	if from != nil && (to == nil || *from != *to) {
		b.Delete(indexKey(nil, o.Shard, *from, o.Number))
	}
	switch {
	case to != nil:
		b.Set(rowKey(nil, o.Shard, o.Number, subAlarm), row)
		b.Set(indexKey(nil, o.Shard, *to, o.Number), index)
	case from != nil:
		b.Delete(rowKey(nil, o.Shard, o.Number, subAlarm))
	}
}

// IndexEntry is an entry of the alarm index.
type IndexEntry struct {
	Due    int64
	Number Number
	Value  []byte
}

// ScanAlarms returns up to limit entries of a shard's alarm index in order of
// due time and number, from the first after (due, number) on.
func (s *Store) ScanAlarms(shard int, due int64, number Number, limit int) ([]IndexEntry, error) {
	_, upper := kindRange(shard, kindIndex)
	lower := append(indexKey(nil, shard, due, number), 0)
	it, err := s.iter(nil, lower, upper, false, 3)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var out []IndexEntry
	for len(out) < limit && it.Next() {
		k := it.Key()
		if len(k) != 16 {
			return nil, s.fail(errKey(k))
		}
		out = append(out, IndexEntry{
			Due:    int64(binary.BigEndian.Uint64(k)),
			Number: Number(binary.BigEndian.Uint64(k[8:])),
			Value:  it.Value(),
		})
	}
	return out, it.Err()
}

// SetOpenMark stores the object's open-execution mark.
func (b *Batch) SetOpenMark(o Object, value []byte) { b.Set(openKey(nil, o.Shard, o.Number), value) }

// DeleteOpenMark removes the object's open-execution mark.
func (b *Batch) DeleteOpenMark(o Object) { b.Delete(openKey(nil, o.Shard, o.Number)) }

// OpenMark returns the object's open-execution mark.
func (s *Store) OpenMark(o Object) (value []byte, ok bool, err error) {
	if o.Number == 0 {
		return nil, false, s.Err()
	}
	return s.get(openKey(nil, o.Shard, o.Number))
}

// OpenMarks calls f with each open-execution mark of the store until f returns an
// error, which it returns. It costs one read for each mark, and none for the objects
// without: so a host finds after a crash which objects to wake.
func (s *Store) OpenMarks(f func(shard int, value []byte) error) error {
	for shard := range s.shards {
		err := s.scan(shard, kindOpen, nil, func(_, value []byte) error { return f(shard, value) })
		if err != nil {
			return err
		}
	}
	return nil
}

// errStop ends a scan early without an error. It never leaves this package.
var errStop = errors.New("storage: stop")

// scan calls f with each row of one kind in a shard from the key after on, with
// the key less its shard and kind, until f returns an error. errStop ends it
// without one.
func (s *Store) scan(shard int, kind byte, after []byte, f func(key, value []byte) error) error {
	return s.scanRows(shard, kind, after, false, f)
}

// scanRows is scan. If it borrows, key and value are valid during the call of f alone, because they are not copied.
func (s *Store) scanRows(shard int, kind byte, after []byte, borrows bool, f func(key, value []byte) error) error {
	lower, upper := kindRange(shard, kind)
	if after != nil {
		lower = append(append(lower, after...), 0)
	}
	it, err := s.iter(nil, lower, upper, false, 3)
	if err != nil {
		return err
	}
	it.borrows = borrows
	defer it.Close()
	for it.Next() {
		if err := f(it.Key(), it.Value()); err != nil {
			if err == errStop {
				return it.Close()
			}
			return err
		}
	}
	return it.Close()
}

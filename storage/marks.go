package storage

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// Marks are rows of an object that expire. Those that expire closely together are
// a bucket. It is removed as a whole, once all of them have expired, so one entry
// of the expiry index serves them all. The key of a mark begins with the time of
// the removal. A key is in one bucket at most: a caller that sets it again removes it
// from the bucket in which it was.
//
// Invariant: a bucket that holds a mark has an entry in the expiry index.

// minBucketBits is the width of the narrowest bucket: 2^36 ns, 69 seconds.
const minBucketBits = 36

// Removal returns when a mark of object number n, set at now, that expires at the
// given time is removed: a minute or a quarter of its time later at most. Buckets
// of different objects begin at different times, so that their removals do not
// all come at once. Times are nanoseconds since 1970.
func Removal(n Number, now, expires int64) int64 {
	// The widest bucket of a quarter of the mark's time is a power of two.
	width := max(minBucketBits, bits.Len64(uint64(max(expires-now, 0)))-3)
	const odd = 0x9e3779b97f4a7c15
	phase := int64(uint64(n) * odd >> (64 - width))
	removal := expires + (phase-expires)&(1<<width-1)
	if removal < expires {
		return math.MaxInt64
	}
	return removal
}

// bucketKeyLen is the length of the key of a mark before the key that its user knows.
const bucketKeyLen = rowPrefixLen + 8

// bucketKey begins the keys of the marks of a bucket.
func bucketKey(dst []byte, o Object, removal int64) []byte {
	return binary.BigEndian.AppendUint64(rowKey(dst, o.Shard, o.Number, subMark), uint64(removal))
}

// markKey is the key of a mark.
func markKey(o Object, removal int64, key string) []byte {
	return append(bucketKey(make([]byte, 0, bucketKeyLen+len(key)), o, removal), key...)
}

// SetMark stores a mark in the bucket that is removed then. It reads nothing, which is
// why idempotency keys that are new cost no read. The caller knows that
// the bucket is in the expiry index, or puts it there with IndexMarks.
func (b *Batch) SetMark(o Object, removal int64, key string, expires int64, value []byte) {
	b.openMark(engine.KindSet, o, removal, key)
	b.expiring(expires, value)
	b.removal = earlier(b.removal, removal)
}

// DeleteMark removes a mark from its bucket.
func (b *Batch) DeleteMark(o Object, removal int64, key string) {
	b.openMark(engine.KindDelete, o, removal, key)
}

// openMark begins a record of a mark.
func (b *Batch) openMark(kind byte, o Object, removal int64, key string) {
	b.open(kind, bucketKeyLen+len(key))
	b.data = append(bucketKey(b.data, o, removal), key...)
}

// IndexMarks stores the bucket's entry in the expiry index, which may be there.
func (b *Batch) IndexMarks(o Object, removal int64) {
	var room [bucketKeyLen]byte
	b.indexExpiry(removal, bucketKey(room[:0], o, removal), o.ID)
}

// indexAgain stores the entries of the buckets that the batch sets marks of, as far as
// their removal may be over.
func (b *Batch) indexAgain(removed int64) {
	for off, end := engine.HeaderBytes, len(b.data); off < end; {
		kind, key, _, _, next := parseRecord(b.data, off)
		if kind == engine.KindSet && len(key) >= bucketKeyLen && key[2] == kindRow && key[rowPrefixLen-1] == subMark {
			if at := int64(binary.BigEndian.Uint64(key[rowPrefixLen:])); at <= removed {
				b.indexExpiry(at, slices.Clone(key[:bucketKeyLen]), b.id)
			}
		}
		off = next
	}
}

// Mark returns a mark of the bucket, and when it expires, as b, which may be nil,
// leaves it.
func (s *Store) Mark(b *Batch, o Object, removal int64, key string) (value []byte, expires int64, ok bool, err error) {
	if o.Number == 0 {
		return nil, 0, false, s.Err()
	}
	v, ok, err := s.read(b, markKey(o, removal, key))
	if err != nil || !ok {
		return nil, 0, false, err
	}
	expires, value, err = splitExpiring(v)
	if err != nil {
		return nil, 0, false, s.fail(err)
	}
	return value, expires, true, nil
}

// Buckets returns when the buckets of the object are removed, in order, without
// those that are removed before the given time. It reads one mark of each.
func (s *Store) Buckets(o Object, from int64) (removals []int64, err error) {
	if o.Number == 0 {
		return nil, s.Err()
	}
	it, err := s.iter(nil, bucketKey(nil, o, max(from, 0)), rowKey(nil, o.Shard, o.Number, subMark+1), false, rowPrefixLen)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for it.Next() {
		removal, _, err := s.splitMark(it.Key())
		if err != nil {
			return nil, err
		}
		removals = append(removals, removal)
		it.skipTo(after(bucketKey(nil, o, removal)))
	}
	return removals, it.Close()
}

// FindMark returns a mark of any bucket, like Mark. It reads one row for each bucket of
// the object, so tools use it and turns do not.
func (s *Store) FindMark(o Object, key string) (value []byte, expires int64, ok bool, err error) {
	removals, err := s.Buckets(o, 0)
	for _, removal := range removals {
		if value, expires, ok, err = s.Mark(nil, o, removal, key); ok || err != nil {
			break
		}
	}
	return value, expires, ok, err
}

// Marks calls f with up to limit marks of the object in order, from the first
// after the one of the given bucket and key on. It reports whether these were the
// last.
func (s *Store) Marks(o Object, removal int64, key string, limit int, f func(removal int64, key []byte)) (last bool, err error) {
	if o.Number == 0 {
		return true, s.Err()
	}
	it, err := s.iter(nil, append(markKey(o, removal, key), 0), rowKey(nil, o.Shard, o.Number, subMark+1), false, rowPrefixLen)
	if err != nil {
		return false, err
	}
	defer it.Close()
	for range limit {
		if !it.Next() {
			return true, it.Close()
		}
		removal, key, err := s.splitMark(it.Key())
		if err != nil {
			return false, err
		}
		f(removal, key)
	}
	return false, it.Close()
}

// MarksEnd returns when the last mark of the object expires that has not expired by
// now, as b, which may be nil, leaves the marks; 0 if there is none. It reads up to
// limit marks. If the object may have more, it returns when the last bucket is removed,
// which is no earlier. The answer is 0 or later than now.
func (s *Store) MarksEnd(b *Batch, o Object, now int64, limit int) (last int64, err error) {
	if o.Number == 0 {
		return 0, s.Err()
	}
	if now = max(now, 0); now == math.MaxInt64 {
		return 0, s.Err()
	}
	// Buckets that are removed by now hold no such mark.
	from, to := bucketKey(nil, o, now+1), rowKey(nil, o.Shard, o.Number, subMark+1)
	it, err := s.iter(b, from, to, false, rowPrefixLen)
	if err != nil {
		return 0, err
	}
	defer it.Close()
	for range limit {
		if !it.Next() {
			return last, it.Close()
		}
		expires, _, err := splitExpiring(it.Value())
		if err != nil {
			return 0, s.fail(err)
		}
		if expires > now {
			last = max(last, expires)
		}
	}
	return s.lastRemoval(b, from, to)
}

// lastRemoval returns when the last bucket with a mark in [from, to) is removed; 0 if
// there is none.
func (s *Store) lastRemoval(b *Batch, from, to []byte) (int64, error) {
	it, err := s.iter(b, from, to, true, rowPrefixLen)
	if err != nil {
		return 0, err
	}
	defer it.Close()
	if !it.Next() {
		return 0, it.Close()
	}
	removal, _, err := s.splitMark(it.Key())
	if err != nil {
		return 0, err
	}
	return removal, it.Close()
}

// splitMark splits the key of a mark, without the bytes before its bucket.
func (s *Store) splitMark(rest []byte) (removal int64, key []byte, err error) {
	if len(rest) < 8 {
		return 0, nil, s.fail(errKey(rest))
	}
	return int64(binary.BigEndian.Uint64(rest)), rest[8:], nil
}

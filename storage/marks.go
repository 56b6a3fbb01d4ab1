package storage

import (
	"encoding/binary"
	"fmt"
)

// Rows that expire: marks of an object, and events. Each has an entry in the
// expiry index, which Expired reads. A mark that is set again keeps its old
// entry too; the value of the mark tells which of them counts.

// markKey is the key of an expiring mark.
func markKey(o Object, key string) []byte {
	return append(rowKey(make([]byte, 0, rowPrefixLen+len(key)), o.Shard, o.Number, subMark), key...)
}

// SetMark stores a mark that expires at the given time, in nanoseconds since
// 1970.
func (b *Batch) SetMark(o Object, key string, expires int64, value []byte) {
	b.marks = true
	k := b.openRow(recordSet, o, subMark, key)
	b.finishExpiring(o.Shard, k, expires, value)
}

// finishExpiring is the rest of a record, begun with its key, whose row expires,
// and the entry of the expiry index.
func (b *Batch) finishExpiring(shard int, key []byte, expires int64, value []byte) {
	b.data = binary.AppendUvarint(b.data, uint64(8+len(value)))
	b.data = appendExpiring(b.data, expires, value)
	b.open(recordSet, expiryPrefixLen+len(key)-2)
	b.data = expiryKey(b.data, shard, expires, key[2:])
	b.data = append(b.data, 0) // no value
	if b.expires == 0 || expires < b.expires {
		b.expires = expires
	}
}

// Expires returns when the first of the rows that the batch sets and that expire
// does; 0 if there is none. After a Rollback it may be too early.
func (b *Batch) Expires() int64 { return b.expires }

// DeleteMark removes a mark.
func (b *Batch) DeleteMark(o Object, key string) { b.Delete(markKey(o, key)) }

// Mark returns a mark and when it expires, as b, which may be nil, leaves it.
func (s *Store) Mark(b *Batch, o Object, key string) (value []byte, expires int64, ok bool, err error) {
	if o.Number == 0 {
		return nil, 0, false, s.Err()
	}
	v, ok, err := s.read(b, markKey(o, key))
	if err != nil || !ok {
		return nil, 0, false, err
	}
	expires, value, err = splitExpiring(v)
	if err != nil {
		return nil, 0, false, s.fail(err)
	}
	return value, expires, true, nil
}

// MarkKeys calls f with the keys of up to limit marks of the object in order, from
// the first after the key after on; an empty after is before all. It reports
// whether these were the last.
func (s *Store) MarkKeys(o Object, after string, limit int, f func(key []byte)) (last bool, err error) {
	if o.Number == 0 {
		return true, s.Err()
	}
	lower := markKey(o, after)
	if after != "" {
		lower = append(lower, 0)
	}
	it, err := s.iter(nil, lower, rowKey(nil, o.Shard, o.Number, subMark+1), false, rowPrefixLen)
	if err != nil {
		return false, err
	}
	defer it.Close()
	for range limit {
		if !it.Next() {
			return true, it.Close()
		}
		f(it.Key())
	}
	return false, it.Close()
}

func appendExpiring(dst []byte, expires int64, value []byte) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(expires)), value...)
}

func splitExpiring(v []byte) (expires int64, value []byte, err error) {
	if len(v) < 8 {
		return 0, nil, fmt.Errorf("%w: expiring row %x", ErrCorrupt, v)
	}
	return int64(binary.BigEndian.Uint64(v)), v[8:], nil
}

// AddEvent stores an event of the object id, which need not exist any more when
// the event is read.
func (b *Batch) AddEvent(shard int, id ID, seq uint64, expires int64, value []byte) {
	k := namedKey(nil, shard, kindEvent, id, seq)
	b.record(recordSet, k)
	b.finishExpiring(shard, k, expires, value)
}

// Events calls f with each event of id whose sequence number is greater than
// after, in order, until f returns false.
func (s *Store) Events(id ID, after uint64, f func(seq uint64, value []byte) bool) error {
	return s.named(kindEvent, id, after, func(seq uint64, v []byte) (bool, error) {
		_, value, err := splitExpiring(v)
		if err != nil {
			return false, s.fail(err)
		}
		return f(seq, value), nil
	})
}

func (s *Store) named(kind byte, id ID, after uint64, f func(seq uint64, v []byte) (bool, error)) error {
	shard := s.ShardOf(id)
	p := namedPrefix(nil, shard, kind, id)
	lower := append(namedKey(nil, shard, kind, id, after), 0)
	// The bound is after every sequence number, also if the prefix ends in 0xff.
	upper := append(namedKey(nil, shard, kind, id, ^uint64(0)), 0)
	it, err := s.iter(nil, lower, upper, false, len(p))
	if err != nil {
		return err
	}
	defer it.Close()
	for it.Next() {
		if len(it.Key()) != 8 {
			return s.fail(errKey(it.Key()))
		}
		more, err := f(binary.BigEndian.Uint64(it.Key()), it.Value())
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	return it.Close()
}

// SetDead stores a dead letter of the object id under a sequence number.
func (b *Batch) SetDead(shard int, id ID, seq uint64, value []byte) {
	b.Set(namedKey(nil, shard, kindDead, id, seq), value)
}

// DropDead removes a dead letter.
func (b *Batch) DropDead(shard int, id ID, seq uint64) {
	b.Delete(namedKey(nil, shard, kindDead, id, seq))
}

// DeadLetters calls f with each dead letter of the object id in order.
func (s *Store) DeadLetters(id ID, f func(seq uint64, value []byte) error) error {
	return s.named(kindDead, id, 0, func(seq uint64, v []byte) (bool, error) { return true, f(seq, v) })
}

// AllDeadLetters calls f with each dead letter of the store.
func (s *Store) AllDeadLetters(f func(id ID, seq uint64, value []byte) error) error {
	for shard := range s.shards {
		err := s.scan(shard, kindDead, nil, func(key, value []byte) error {
			id, seq, err := decodeNamed(key)
			if err != nil {
				return s.fail(err)
			}
			return f(id, seq, value)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Expire removes up to limit rows of a shard that expire at or before now, as one
// commit that nobody waits for. It returns what Expired does. A mark that is set
// again meanwhile is kept.
func (s *Store) Expire(shard int, now int64, limit int) (done int, next int64, ok bool, err error) {
	var b Batch
	s.seams.At("commit/before", "")
	// No mark is set between the look at the old one and its removal.
	s.marking.Lock()
	done, next, ok, err = s.Expired(&b, shard, now, limit)
	if err == nil && done > 0 {
		if err = s.space.admit(b.Len()); err == nil {
			err = s.applyNow(b.Repr())
		}
	}
	s.marking.Unlock()
	if err != nil {
		return 0, 0, false, err
	}
	if done > 0 {
		s.pipeline.applied(b.Len())
	}
	s.seams.At("commit/after", "")
	return done, next, ok, nil
}

// Expired appends to b the removal of up to limit rows of a shard that expire at
// or before now. It returns how many entries it handled and, if fewer than limit,
// when the next one expires; ok is false if there is none. Between Expired and the
// commit of b no mark of the shard may be set; see Expire.
func (s *Store) Expired(b *Batch, shard int, now int64, limit int) (done int, next int64, ok bool, err error) {
	err = s.scan(shard, kindExpiry, nil, func(key, _ []byte) error {
		if len(key) < 8 {
			return s.fail(errKey(key))
		}
		at := int64(binary.BigEndian.Uint64(key))
		if at > now || done == limit {
			next, ok = at, true
			return errStop
		}
		done++
		return s.expire(b, shard, at, key[8:])
	})
	return done, next, ok, err
}

// expire removes an entry of the expiry index and its row, unless the row was
// set again to expire later.
func (s *Store) expire(b *Batch, shard int, at int64, rest []byte) error {
	key := append(binary.BigEndian.AppendUint16(nil, uint16(shard)), rest...)
	b.Delete(expiryKey(nil, shard, at, rest))
	v, ok, err := s.get(key)
	if err != nil || !ok {
		return err
	}
	expires, _, err := splitExpiring(v)
	if err != nil {
		return s.fail(err)
	}
	if expires <= at {
		b.Delete(key)
	}
	return nil
}

package storage

import "encoding/binary"

// Rows of an object's name, which outlive the object: events and dead letters.

// AddEvent stores an event of the object id, which need not exist any more when
// the event is read.
func (b *Batch) AddEvent(shard int, id ID, seq uint64, expires int64, value []byte) {
	k := namedKey(make([]byte, 0, keyRoom), shard, kindEvent, id, seq)
	b.record(recordSet, k)
	b.expiring(expires, value)
	b.indexExpiry(expires, k, ID{})
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

package storage

import (
	"encoding/binary"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// Rows of an object's name, which outlive the object: events and dead letters.

// AddEvent stores an event and its entry in the expiry index, so that it goes at the time
// expires, in nanoseconds since 1970. The event is one of the object id, which need not exist any more when
// the event is read.
func (b *Batch) AddEvent(shard int, id ID, seq uint64, expires int64, value []byte) {
	k := namedKey(make([]byte, 0, keyRoom), shard, kindEvent, id, seq)
	b.record(engine.KindSet, k)
	b.expiring(expires, value)
	b.indexExpiry(expires, k, ID{})
}

// Events calls f with each event that the batch stores, in the order of AddEvent. The value is
// valid until the next change of the batch.
func (b *Batch) Events(f func(seq uint64, value []byte)) {
	for off := engine.HeaderBytes; off < len(b.data); {
		kind, key, from, to, next := parseRecord(b.data, off)
		if kind == engine.KindSet && key[2] == kindEvent {
			f(binary.BigEndian.Uint64(key[len(key)-8:]), b.data[from+8:to]) // behind the time of expiry
		}
		off = next
	}
}

// Events calls f with each event of id that has a greater sequence number than after,
// in order, until f returns false. Events that have expired and are not yet removed
// are among them.
func (s *Store) Events(id ID, after uint64, f func(seq uint64, value []byte) bool) error {
	return s.named(kindEvent, id, after, false, s.eventTo(f))
}

// Event returns the event of id with a sequence number. An event that has expired may be stored still.
func (s *Store) Event(id ID, seq uint64) (value []byte, ok bool, err error) {
	v, ok, err := s.get(namedKey(nil, s.ShardOf(id), kindEvent, id, seq))
	if !ok || err != nil {
		return nil, false, err
	}
	if _, value, err = splitExpiring(v); err != nil {
		return nil, false, s.fail(err)
	}
	return value, true, nil
}

// NewestEvents calls f with each event of id, from the newest to the oldest, until f returns
// false. Events that have expired and are not yet removed are among them.
func (s *Store) NewestEvents(id ID, f func(seq uint64, value []byte) bool) error {
	return s.named(kindEvent, id, 0, true, s.eventTo(f))
}

// eventTo passes events to f without the time at which they go.
func (s *Store) eventTo(f func(seq uint64, value []byte) bool) func(seq uint64, v []byte) (bool, error) {
	return func(seq uint64, v []byte) (bool, error) {
		_, value, err := splitExpiring(v)
		if err != nil {
			return false, s.fail(err)
		}
		return f(seq, value), nil
	}
}

// named calls f with each row of a kind that has the object's name and a sequence number
// greater than after, in order or in reverse, until f reports false or returns an error.
func (s *Store) named(kind byte, id ID, after uint64, reverse bool, f func(seq uint64, v []byte) (bool, error)) error {
	shard := s.ShardOf(id)
	p := namedPrefix(nil, shard, kind, id)
	lower := append(namedKey(nil, shard, kind, id, after), 0)
	// The bound is after every sequence number, also if the prefix ends in 0xff.
	upper := append(namedKey(nil, shard, kind, id, ^uint64(0)), 0)
	it, err := s.iter(nil, lower, upper, reverse, len(p))
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

// SetDead stores a dead letter of the object id under a sequence number. It does not
// expire: DeleteDead removes it.
func (b *Batch) SetDead(shard int, id ID, seq uint64, value []byte) {
	b.Set(namedKey(nil, shard, kindDead, id, seq), value)
}

// DeleteDead removes a dead letter.
func (b *Batch) DeleteDead(shard int, id ID, seq uint64) {
	b.Delete(namedKey(nil, shard, kindDead, id, seq))
}

// DeleteAllDead removes all dead letters that the object id has before this batch, as one
// range. Letters that the batch stores afterwards stay.
func (b *Batch) DeleteAllDead(shard int, id ID) {
	b.DeleteRange(namedKey(nil, shard, kindDead, id, 0), append(namedKey(nil, shard, kindDead, id, ^uint64(0)), 0))
}

// DeadLetters calls f with each dead letter of the object id in order.
func (s *Store) DeadLetters(id ID, f func(seq uint64, value []byte) error) error {
	return s.named(kindDead, id, 0, false, func(seq uint64, v []byte) (bool, error) { return true, f(seq, v) })
}

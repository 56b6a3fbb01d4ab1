package storage

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// A Snapshot serves copies of an object. All of its rows lie in one shard, although of several
// kinds: one iterator of the engine over that shard has them all as they were when it was made,
// because an iterator does not see later batches. Each method seeks in that iterator, and walks
// the range of its kind:
//
//	01 header   class 00 name         its number, which the keys of the next three have
//	02 row      number 01             the alarm
//	            number 02 key         a key of the user
//	            number 03 bucket key  a mark
//	04 open     number                the open execution
//	06 event, 07 dead letter, 08 message: by class and name, because they outlive the object

// Snapshot is all rows of one object as they were at one moment, also while commits go on. It
// is for one goroutine, and is closed before the store. The engine keeps the bytes of that moment
// until then, so a Snapshot is not held for long.
type Snapshot struct {
	store  *Store
	base   engine.Iterator // over the kinds of rows in the object's shard
	object Object
}

// Snapshot returns the rows of the object id as they are now. An object that does not exist may
// have events, dead letters and messages.
func (s *Store) Snapshot(id ID) (*Snapshot, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	shard := s.ShardOf(id)
	base, err := s.engine.NewIter(prefix(nil, shard, kindHeader), prefix(nil, shard, kindEnd))
	s.exit()
	if err != nil {
		return nil, s.fail(err)
	}
	x := &Snapshot{store: s, base: base, object: Object{ID: id, Shard: shard}}
	v, ok, err := x.get(headerKey(nil, shard, id))
	if err == nil && ok {
		var h header
		h, err = decodeHeader(v)
		x.object.Number, x.object.Epoch, x.object.Label = h.number, h.epoch, h.label
	}
	if err != nil {
		_ = base.Close() // err says why there is no snapshot
		return nil, s.fail(err)
	}
	return x, nil
}

// Close gives the snapshot back.
func (x *Snapshot) Close() error {
	if err := x.base.Close(); err != nil {
		return x.store.fail(err)
	}
	return nil
}

// Object returns where the object is; its Number is 0 if it does not exist.
func (x *Snapshot) Object() Object { return x.object }

// get returns a copy of the value of a key.
func (x *Snapshot) get(key []byte) (value []byte, ok bool, err error) {
	err = x.walk(key, append(slices.Clone(key), 0), func(_, v []byte) error {
		value, ok = slices.Clone(v), true
		return nil
	})
	return value, ok, err
}

// walk calls f with each row in [lower, upper), until f returns an error. Key and value are
// valid during the call. f may not use the snapshot, because that would move the iterator. A
// store that dies meanwhile ends the walk with its error, so a walk that ends without one has
// seen all rows.
func (x *Snapshot) walk(lower, upper []byte, f func(key, value []byte) error) error {
	for ok := x.seek(lower); ok && bytes.Compare(x.base.Key(), upper) < 0; ok = x.next() {
		value, err := x.base.ValueAndErr()
		if err != nil {
			return x.store.fail(err)
		}
		if err := f(x.base.Key(), value); err != nil {
			return err
		}
	}
	if err := x.base.Error(); err != nil {
		return x.store.fail(err)
	}
	return x.store.Err()
}

// seek moves to the first row from key on, and next to the one behind. A dead store has none:
// then walk returns the error of the store. The store counts both as calls under way, so that it
// is not released beneath them.
func (x *Snapshot) seek(key []byte) bool {
	if x.store.enter() != nil {
		return false
	}
	defer x.store.exit()
	return x.base.SeekGE(key)
}

func (x *Snapshot) next() bool {
	if x.store.enter() != nil {
		return false
	}
	defer x.store.exit()
	return x.base.Next()
}

// Alarm returns the object's alarm row.
func (x *Snapshot) Alarm() (row []byte, ok bool, err error) {
	return x.get(rowKey(nil, x.object.Shard, x.object.Number, subAlarm))
}

// OpenMark returns the object's open-execution mark.
func (x *Snapshot) OpenMark() (value []byte, ok bool, err error) {
	return x.get(openKey(nil, x.object.Shard, x.object.Number))
}

// Data calls f with each of the object's keys, in the order of their bytes. The value is valid
// during the call.
func (x *Snapshot) Data(f func(key string, value []byte) error) error {
	lower, upper := dataRange(x.object, "", "")
	return x.walk(lower, upper, func(key, value []byte) error { return f(string(key[rowPrefixLen:]), value) })
}

// Marks calls f with each mark of the object, in the order of the bytes of their keys. That is
// not the order in which they are stored, so the keys of all marks are in memory meanwhile.
func (x *Snapshot) Marks(f func(key string, expires int64, value []byte) error) error {
	type place struct {
		key     string
		removal int64
	}
	var places []place
	lower, upper := rowKey(nil, x.object.Shard, x.object.Number, subMark), rowKey(nil, x.object.Shard, x.object.Number, subMark+1)
	err := x.walk(lower, upper, func(key, _ []byte) error {
		removal, rest, err := x.store.splitMark(key[rowPrefixLen:])
		places = append(places, place{string(rest), removal})
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(places, func(a, b place) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
	for _, p := range places {
		v, _, err := x.get(markKey(x.object, p.removal, p.key))
		if err != nil {
			return err
		}
		expires, value, err := splitExpiring(v)
		if err != nil {
			return x.store.fail(err)
		}
		if err := f(p.key, expires, value); err != nil {
			return err
		}
	}
	return nil
}

// Events calls f with each event of the object's name, in order. The value is valid during the
// call.
func (x *Snapshot) Events(f func(seq uint64, expires int64, value []byte) error) error {
	return x.named(kindEvent, func(seq uint64, v []byte) error {
		expires, value, err := splitExpiring(v)
		if err != nil {
			return x.store.fail(err)
		}
		return f(seq, expires, value)
	})
}

// DeadLetters calls f with each dead letter of the object's name, in order. The value is valid
// during the call.
func (x *Snapshot) DeadLetters(f func(seq uint64, value []byte) error) error {
	return x.named(kindDead, f)
}

// Messages returns how many messages to the object wait.
func (x *Snapshot) Messages() (n int, err error) {
	p := namedPrefix(nil, x.object.Shard, kindMessage, x.object.ID)
	err = x.walk(p, after(p), func(key, _ []byte) error {
		if key[len(key)-1] == messageValue {
			n++
		}
		return nil
	})
	return n, err
}

// named calls f with each row of a kind that has the object's name, in the order of their
// sequence numbers. The length before the name ends the range, so the rows of "bobby" are not
// among those of "bob".
func (x *Snapshot) named(kind byte, f func(seq uint64, value []byte) error) error {
	p := namedPrefix(nil, x.object.Shard, kind, x.object.ID)
	return x.walk(p, after(p), func(key, value []byte) error {
		if len(key) != len(p)+8 {
			return x.store.fail(errKey(key))
		}
		return f(binary.BigEndian.Uint64(key[len(p):]), value)
	})
}

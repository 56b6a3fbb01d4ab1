package storage

import (
	"bytes"
	"fmt"
	"slices"
)

// DeadOptions say which dead letters Store.ListDead passes on. All of them apply together.
type DeadOptions struct {
	Class string // only letters of this class; empty: of all
	Name  string // only letters of the object Class/Name; empty: of all objects
	// After is the cursor of an earlier call, to go on behind its last letter; nil: from the
	// first letter. A cursor is a place in the list, so it may be used with other options.
	After []byte
}

// ListDead calls f with each dead letter of the store, in an order that does not change, until
// f returns false. Then next is a cursor behind that letter. At the end of the list next is nil.
// It reads the letters that it passes on and no others. A cursor that this package has not
// made is ErrBadCursor.
func (s *Store) ListDead(o DeadOptions, f func(id ID, seq uint64, value []byte) (more bool)) (next []byte, err error) {
	first, last := 0, s.shards-1
	if o.Name != "" {
		first = s.ShardOf(ID{o.Class, o.Name})
		last = first
	}
	place, err := s.deadPlace(o.After)
	if err != nil {
		return nil, err
	}
	for shard := first; shard <= last && next == nil; shard++ {
		lower, upper := o.rangeIn(shard)
		if bytes.Compare(place, lower) >= 0 {
			lower = append(slices.Clone(place), 0)
		}
		if next, err = s.listDead(lower, upper, f); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// listDead is ListDead for a range of keys in one shard.
func (s *Store) listDead(lower, upper []byte, f func(id ID, seq uint64, value []byte) bool) (next []byte, err error) {
	it, err := s.iter(nil, lower, upper, false, 3)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for it.Next() {
		id, seq, err := decodeNamed(it.Key())
		if err != nil {
			return nil, s.fail(err)
		}
		if !f(id, seq, it.Value()) {
			return append([]byte{deadCursorVersion}, it.Key()...), it.Close()
		}
	}
	return nil, it.Close()
}

// rangeIn returns the range of the keys that the options mean in a shard. A class is one range,
// because the zero byte behind it ends it: the letters of "cart" are not among those of "carts".
// An object is one range too, because the length of a name stands before the name.
func (o DeadOptions) rangeIn(shard int) (lower, upper []byte) {
	switch {
	case o.Class == "":
		return kindRange(shard, kindDead)
	case o.Name == "":
		lower = append(append(prefix(nil, shard, kindDead), o.Class...), 0)
	default:
		lower = namedPrefix(nil, shard, kindDead, ID{o.Class, o.Name})
	}
	return lower, after(lower)
}

// deadCursorVersion is the first byte of a cursor of ListDead. Behind it stands the key of the
// letter without its shard, because the name tells the shard:
//
//	01 63617274 00 0003 626f62 0000000100000009    letter 1<<32 + 9 of cart/bob
//
// A cursor is as long as a name and says nothing of the options. A program that makes one up
// gets a place in the list, or ErrBadCursor if no letter can be there.
const deadCursorVersion = 1

// deadPlace returns the key of the letter that a cursor stands behind; nil for no cursor.
func (s *Store) deadPlace(cursor []byte) ([]byte, error) {
	if len(cursor) == 0 {
		return nil, nil
	}
	id, seq, err := decodeNamed(cursor[1:])
	if err == nil {
		err = id.Validate()
	}
	if err != nil || cursor[0] != deadCursorVersion {
		return nil, fmt.Errorf("%w: %x", ErrBadCursor, cursor)
	}
	return namedKey(nil, s.ShardOf(id), kindDead, id, seq), nil
}

// DeadLetter returns a dead letter of the object id.
func (s *Store) DeadLetter(id ID, seq uint64) (value []byte, ok bool, err error) {
	return s.get(namedKey(nil, s.ShardOf(id), kindDead, id, seq))
}

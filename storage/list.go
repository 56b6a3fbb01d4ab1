package storage

import (
	"bytes"
	"slices"
)

// Objects calls f with each object of the class, by shard and name, from the one after the object
// named after on ("" for the first), until f returns false. It reads one row for each object and
// does not hold them in memory, so it suits a walk over a class of millions. List has a page in
// the order of the names.
func (s *Store) Objects(class, after string, f func(Object) bool) error {
	first := 0
	if after != "" {
		first = s.ShardOf(ID{class, after})
	}
	more := true
	for shard := first; shard < s.shards && more; shard++ {
		begin := append([]byte(class), 0)
		if after != "" && shard == first {
			begin = append(begin, after...)
		}
		err := s.scan(shard, kindHeader, begin, func(key, value []byte) error {
			id, err := decodeHeaderKey(key)
			if err != nil {
				return s.fail(err)
			}
			if id.Class != class {
				return errStop
			}
			h, err := decodeHeader(value)
			if err != nil {
				return s.fail(err)
			}
			if more = f(Object{id, shard, h.number, h.epoch, h.label}); !more {
				return errStop
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Classes returns the classes of which the store holds an object, in the order of their names. It
// reads a row for each class of a shard: behind a class it goes on with the first key after all
// names of that class.
func (s *Store) Classes() ([]string, error) { return s.classes(kindHeader) }

// MessageClasses returns the classes of which an object has a stored message, as Classes does.
func (s *Store) MessageClasses() ([]string, error) { return s.classes(kindMessage) }

// classes returns the classes in the keys of a kind that begin with class and 0x00.
func (s *Store) classes(kind byte) ([]string, error) {
	rows := ranges{store: s}
	defer rows.close()
	var out []string
	seen := make(map[string]bool)
	var behind []byte // all names of a class
	for shard := range s.shards {
		lower, upper := kindRange(shard, kind)
		for ok := rows.first(lower, upper); ok; ok = rows.seek(behind) {
			rest := rows.key()[len(lower):]
			end := bytes.IndexByte(rest, 0)
			if end < 0 {
				return nil, s.fail(errKey(rest))
			}
			if !seen[string(rest[:end])] { // a look by such a key is no allocation
				class := string(rest[:end])
				seen[class], out = true, append(out, class)
			}
			behind = append(append(append(behind[:0], lower...), rest[:end]...), 1)
		}
	}
	if err := rows.close(); err != nil {
		return nil, err
	}
	slices.Sort(out)
	return out, nil
}

// Size estimates the bytes that the object's rows take on disk. Rows that are still in
// memory may be left out.
func (s *Store) Size(o Object) (sizeBytes uint64, err error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.exit()
	n, err := s.engine.Usage(rowKey(nil, o.Shard, o.Number, 0), rowKey(nil, o.Shard, o.Number, subEnd))
	if err != nil {
		return 0, s.fail(err)
	}
	return n, nil
}

// metaKey is the key of a row of the store itself.
func metaKey(name string) []byte { return append(prefix(nil, metaShard, 0), name...) }

// Meta returns a row of the store itself, by its name. The epoch row is one, and the
// packages above keep others, for example the alarms that were under way.
func (s *Store) Meta(name string) (value []byte, ok bool, err error) { return s.get(metaKey(name)) }

// SetMeta stores a row of the store itself. The name "epoch" belongs to this package.
func (b *Batch) SetMeta(name string, value []byte) { b.Set(metaKey(name), value) }

// DeleteMeta removes a row of the store itself, if it is there.
func (b *Batch) DeleteMeta(name string) { b.Delete(metaKey(name)) }

// Metas calls f with each row of the store itself that has a name with the prefix p.
func (s *Store) Metas(p string, f func(name string, value []byte) error) error {
	return s.scan(metaShard, 0, nil, func(key, value []byte) error {
		if len(key) < len(p) || string(key[:len(p)]) != p {
			return nil
		}
		return f(string(key), value)
	})
}

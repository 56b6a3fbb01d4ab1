package storage

import "slices"

// Objects reads one row for each object and does not hold them in memory, so it suits a walk
// over a class of millions. List has a page in the order of the names. Objects calls f with each object of the class, by shard and name, from the one
// after the object named after on ("" for the first), until f returns false.
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

// Classes reads one row for each class of a shard: after a class it goes on with the
// first key behind all names of that class. It returns the classes of which the store holds an object, in order of
// their names.
func (s *Store) Classes() ([]string, error) { return s.classes(kindHeader) }

// MessageClasses returns the classes of which an object has a stored message, as Classes does.
func (s *Store) MessageClasses() ([]string, error) { return s.classes(kindMessage) }

// classes returns the classes in the keys of a kind that begin with class and 0x00.
func (s *Store) classes(kind byte) ([]string, error) {
	seen := make(map[string]bool)
	var out []string
	for shard := range s.shards {
		var last []byte
		for {
			var class string
			err := s.scan(shard, kind, last, func(key, _ []byte) error {
				var ok bool
				if class, _, ok = cut0(key); !ok {
					return s.fail(errKey(key))
				}
				return errStop
			})
			if err != nil {
				return nil, err
			}
			if class == "" {
				break
			}
			if !seen[class] {
				seen[class] = true
				out = append(out, class)
			}
			last = append([]byte(class), 1) // after all names of the class
		}
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

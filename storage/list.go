package storage

// Objects calls f with each object of the class, by shard and name, from the one
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
			if more = f(Object{id, shard, h.number, h.epoch}); !more {
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

// Classes returns the classes of which the store holds an object, in order of
// their names in each shard.
func (s *Store) Classes() ([]string, error) {
	seen := make(map[string]bool)
	var out []string
	for shard := range s.shards {
		var last []byte
		for {
			var class string
			err := s.scan(shard, kindHeader, last, func(key, _ []byte) error {
				id, err := decodeHeaderKey(key)
				if err != nil {
					return s.fail(err)
				}
				class = id.Class
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
	return out, nil
}

// Size estimates the bytes that the object's rows take on disk.
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

// Meta returns a row of the store itself.
func (s *Store) Meta(name string) (value []byte, ok bool, err error) { return s.get(metaKey(name)) }

// SetMeta stores a row of the store itself.
func (b *Batch) SetMeta(name string, value []byte) { b.Set(metaKey(name), value) }

// DeleteMeta removes a row of the store itself.
func (b *Batch) DeleteMeta(name string) { b.Delete(metaKey(name)) }

// Metas calls f with each row of the store itself whose name begins with p.
func (s *Store) Metas(p string, f func(name string, value []byte) error) error {
	return s.scan(metaShard, 0, nil, func(key, value []byte) error {
		if len(key) < len(p) || string(key[:len(p)]) != p {
			return nil
		}
		return f(string(key), value)
	})
}

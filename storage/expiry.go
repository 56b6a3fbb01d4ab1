package storage

import (
	"encoding/binary"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// The expiry index says when events and buckets of marks are removed. An entry holds
// the time, and the bytes that the keys begin with that go then. The entry of a bucket
// also has the object's class and name, because an object may end with its last bucket.
//
// The way of a bucket: IndexMarks stores its entry, SetMark its marks. Once the time
// has come, Expire removes all of them in one batch, while no other batch with marks is
// applied (Store.marking). A turn that is so late that it sets a mark of a bucket
// after that stores the entry again (indexAgain), so that no mark stays for ever.

// indexExpiry stores an entry: at the given time each key that begins with key
// goes. The zero id means that there is no object to look at then.
func (b *Batch) indexExpiry(at int64, key []byte, id ID) {
	b.open(engine.KindSet, expiryPrefixLen+len(key)-2)
	b.data = expiryKey(b.data, int(binary.BigEndian.Uint16(key)), at, key[2:])
	if id.Class == "" {
		b.data = append(b.data, 0) // no value
	} else {
		b.data = binary.AppendUvarint(b.data, uint64(len(id.Class)+1+len(id.Name)))
		b.data = append(append(append(b.data, id.Class...), 0), id.Name...)
	}
	b.expires = earlier(b.expires, at)
}

// expiring appends the value of a row that expires to the record that open began.
func (b *Batch) expiring(expires int64, value []byte) {
	b.data = binary.AppendUvarint(b.data, uint64(8+len(value)))
	b.data = appendExpiring(b.data, expires, value)
}

// earlier returns the earlier of two times, of which 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// Expires returns the time of the first entry of the expiry index that the batch sets,
// so that the host can arm its timer for it; 0 if there is none. After a Rollback it may be too early.
func (b *Batch) Expires() int64 { return b.expires }

// Expire removes rows of a shard that expire at or before now, up to about limit,
// as one commit that is not waited for. It returns the same as Expired. A mark that is
// set meanwhile is kept.
func (s *Store) Expire(shard int, now int64, limit int, lapses *Lapses) (done int, next int64, ok bool, err error) {
	var b Batch
	s.seams.At("commit/before", "")
	// No mark is set between the look at its bucket and the removal of that.
	s.marking.Lock()
	s.removed = max(s.removed, now)
	done, next, ok, err = s.Expired(&b, shard, now, limit, lapses)
	if err == nil && done > 0 {
		if err = s.admit(b.Len(), s.seams.Steady()); err == nil {
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

// Expired appends to b the removal of rows of a shard that expire at or before now,
// until they are limit or more; buckets are removed as a whole. It returns how many
// records that took, and when the next rows expire if it stopped before them or
// none is due; ok is false if there are none. Between Expired and the commit of b no
// mark of the shard may be set; see Expire. With lapses, the entries of buckets are
// added to it and stay in the index at a later time, because the caller has yet to look
// at their objects; with nil they go.
func (s *Store) Expired(b *Batch, shard int, now int64, limit int, lapses *Lapses) (done int, next int64, ok bool, err error) {
	err = s.scan(shard, kindExpiry, nil, func(key, value []byte) error {
		at, begins, err := splitExpiry(shard, key)
		if err != nil {
			return s.fail(err)
		}
		if at > now || int(b.count) >= limit {
			next, ok = at, true
			return errStop
		}
		b.Delete(expiryKey(nil, shard, at, key[8:]))
		if begins[2] != kindRow {
			b.Delete(begins) // an event: no other key begins with its key
			return nil
		}
		if lapses != nil && len(value) > 0 {
			if err := lapses.add(b, shard, begins, value); err != nil {
				return s.fail(err)
			}
		}
		return s.deleteRange(b, nil, begins, after(begins))
	})
	return int(b.count), next, ok, err
}

// splitExpiry splits the key of an entry into its time and the beginning of its rows.
func splitExpiry(shard int, key []byte) (at int64, begins []byte, err error) {
	if len(key) < 9 {
		return 0, nil, errKey(key)
	}
	begins = append(binary.BigEndian.AppendUint16(nil, uint16(shard)), key[8:]...)
	return int64(binary.BigEndian.Uint64(key)), begins, nil
}

// appendExpiring appends the value of a row that expires: the time and its value.
func appendExpiring(dst []byte, expires int64, value []byte) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(expires)), value...)
}

// splitExpiring splits the value that appendExpiring has made.
func splitExpiring(v []byte) (expires int64, value []byte, err error) {
	if len(v) < 8 {
		return 0, nil, fmt.Errorf("%w: expiring row %x", ErrCorrupt, v)
	}
	return int64(binary.BigEndian.Uint64(v)), v[8:], nil
}

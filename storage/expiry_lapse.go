package storage

import "encoding/binary"

// A Lapse is a bucket of marks that Expire has removed. Its object may have nothing
// left, and then it must end in a turn of its own, because a turn beside the removal
// may write. The entry of the bucket stays in the expiry index, at a later time,
// until EndLapse removes it, so that a crash in between loses no lapse.
type Lapse struct {
	Object Object // without its epoch

	entry []byte // its key
}

// Lapses collects the lapses of an Expire.
type Lapses struct {
	Again int64 // when a lapse that has not ended is expired again; later than now
	All   []Lapse
}

// add notes the lapse of a bucket, the keys of which begin with begins, and appends the
// entry that stays to b.
func (l *Lapses) add(b *Batch, shard int, begins, value []byte) error {
	id, err := decodeHeaderKey(value)
	if err != nil {
		return err
	}
	if len(begins) != bucketKeyLen {
		return errKey(begins)
	}
	o := Object{ID: id, Shard: shard, Number: Number(binary.BigEndian.Uint64(begins[3:]))}
	b.indexExpiry(l.Again, begins, id)
	l.All = append(l.All, Lapse{o, expiryKey(nil, shard, l.Again, begins[2:])})
	return nil
}

// EndLapse removes the entry of the lapse: its object has been looked at.
func (b *Batch) EndLapse(l Lapse) { b.Delete(l.entry) }

package storage

import (
	"fmt"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/row"
)

// An object that is too large for one batch is stored in several, and its header in the last:
// until then no reader finds it. The first batch has a row of the store that tells of the rows
// without a header, and the last removes it. After a crash in between the next opening removes
// the rows and then lets anything else begin, so they are never found twice.
//
// Invariant: rows of an object number have a header, or a row that says unfinished.

// unfinishedPrefix begins the names of those rows.
const unfinishedPrefix = "unfinished/"

const unfinishedVersion = 1

// unfinishedName is the name of the row of an object.
func unfinishedName(n Number) string { return unfinishedPrefix + strconv.FormatUint(uint64(n), 10) }

// BeginUnfinished says that the keys and marks of o are stored in several batches. It is in the
// first of them.
func (b *Batch) BeginUnfinished(o Object) {
	b.SetMeta(unfinishedName(o.Number), row.Writer{unfinishedVersion}.Uint(uint64(o.Shard)).Uint(uint64(o.Number)))
}

// EndUnfinished says that all of o is stored. It is in the batch of its header.
func (b *Batch) EndUnfinished(o Object) { b.DeleteMeta(unfinishedName(o.Number)) }

// DropUnfinished removes the keys and marks of o, which has no header, and the row that tells
// of them. Entries of the expiry index stay, and find nothing when their time has come.
func (b *Batch) DropUnfinished(o Object) {
	b.DeleteRange(rowKey(nil, o.Shard, o.Number, 0), rowKey(nil, o.Shard, o.Number, subEnd))
	b.EndUnfinished(o)
}

// unfinished returns the shards and numbers of the objects without a header.
func (s *Store) unfinished() (all []Object, err error) {
	err = s.Metas(unfinishedPrefix, func(name string, value []byte) error {
		r := row.Read(value)
		version := r.Byte()
		shard, number := r.Uint(), Number(r.Uint())
		if r.Required(); version != unfinishedVersion || !r.OK() || shard >= uint64(s.shards) || unfinishedName(number) != name {
			return s.fail(fmt.Errorf("%w: row %q: %x", ErrCorrupt, name, value))
		}
		all = append(all, Object{Shard: int(shard), Number: number})
		return nil
	})
	return all, err
}

// dropUnfinished removes the objects that an earlier opening has begun to store and not
// finished. It does not wait for the disk: if the removal is lost, the next opening repeats it.
func (s *Store) dropUnfinished() error {
	all, err := s.unfinished()
	if err != nil || len(all) == 0 {
		return err
	}
	var b Batch
	for _, o := range all {
		b.DropUnfinished(o)
	}
	_, err = s.apply(&b)
	return err
}

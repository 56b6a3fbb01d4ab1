package storage

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// ranges walks one range of rows after another, for example the same range of each shard. All
// ranges are of one snapshot, of the moment of the first. They share one iterator of the engine, because a
// new one costs more than the move of one. A ranges is for one goroutine and must be closed.
//
//	r := ranges{store: s}
//	defer r.close()
//	for ok := r.first(lower, upper); ok; ok = r.next() {
//		use(r.key())
//	}
//	return r.close()
type ranges struct {
	store *Store
	base  engine.Iterator // nil: there was no range yet, or close was called
	err   error
}

// first goes to the first row in [lower, upper) and reports whether there is one. The bounds stay the
// caller's.
func (r *ranges) first(lower, upper []byte) bool {
	if r.err != nil || bytes.Compare(lower, upper) >= 0 {
		return false
	}
	if r.base != nil {
		r.base.SetBounds(lower, upper)
	} else if r.err = r.open(lower, upper); r.err != nil {
		return false
	}
	return r.on(r.base.First())
}

// open makes the iterator, and with it the snapshot. The store stays open for as long as this takes.
func (r *ranges) open(lower, upper []byte) (err error) {
	if err := r.store.enter(); err != nil {
		return err
	}
	defer r.store.exit()
	// The engine keeps the bounds, and callers write each range over the one before.
	if r.base, err = r.store.engine.NewIter(bytes.Clone(lower), bytes.Clone(upper)); err != nil {
		r.base = nil
		return r.store.fail(err)
	}
	return nil
}

// next goes to the next row of the range. It may be called after a move that has found a row, because
// only then the walk has an iterator.
func (r *ranges) next() bool { return r.on(r.base.Next()) }

// seek goes to the first row of the range with a key that is not less than key. It passes over
// the rows before by the index of the engine, so it costs the same however many they are. As next, it
// follows a move that has found a row.
func (r *ranges) seek(key []byte) bool { return r.on(r.base.SeekGE(key)) }

// on reports whether the walk stands on a row, and keeps the error that ended it. A store that has
// ended ends the walk too, because its engine may answer from memory for a long time after.
func (r *ranges) on(ok bool) bool {
	if !ok {
		r.fail(r.base.Error())
	}
	if r.err == nil {
		r.err = r.store.Err()
	}
	return ok && r.err == nil
}

// key is the key of the row, which is valid until the next move.
func (r *ranges) key() []byte { return r.base.Key() }

// value is the value of the row, which is valid until the next move. It is nil after an error, which
// err then has.
func (r *ranges) value() []byte {
	v, err := r.base.ValueAndErr()
	r.fail(err)
	return v
}

// fail keeps the first error, which is the end of the store.
func (r *ranges) fail(err error) {
	if err != nil && r.err == nil {
		r.err = r.store.fail(err)
	}
}

// close gives the snapshot back, and returns the error that ended a walk early. It may be called more than once.
func (r *ranges) close() error {
	if r.base != nil {
		r.fail(r.base.Close())
		r.base = nil
	}
	return r.err
}

package storage

import (
	"bytes"
	"slices"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// Iter walks a range of keys as a batch leaves them, over a snapshot of the
// moment it was made. It is for one goroutine and must be closed.
//
//	it, err := store.ListData(nil, o, "", "", false)
//	if err != nil {
//		return err
//	}
//	defer it.Close()
//	for it.Next() {
//		use(it.Key(), it.Value())
//	}
//	return it.Err()
//
// It merges two sorted walks: the base, which is the engine's, and own, which is the
// batch's changes. A key that both have is taken from the batch, because that is newer.
type Iter struct {
	store   *Store
	base    engine.Iterator // nil: the range is empty, or the iterator is closed
	baseOK  bool            // base stands on a key
	placed  bool            // base has been positioned
	used    bool            // base stands on the key given last, or on one hidden by it
	own     []overlaid      // the batch's changes in the range, in the order of the walk
	ranges  []span          // ranges that the batch deletes
	reverse bool
	borrows bool // key and value are those of base, valid until the next move
	strip   int  // bytes of each key that Key leaves out

	key, value []byte
	err        error
}

// iter returns an iterator over [lower, upper) as b, which may be nil, leaves it.
func (s *Store) iter(b *Batch, lower, upper []byte, reverse bool, strip int) (*Iter, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.exit()
	it := &Iter{store: s, reverse: reverse, strip: strip}
	if bytes.Compare(lower, upper) >= 0 {
		return it, nil
	}
	base, err := s.engine.NewIter(lower, upper)
	if err != nil {
		return nil, s.fail(err)
	}
	it.base = base
	if b != nil {
		it.own = b.within(string(lower), string(upper))
		it.ranges = slices.Clone(b.ranges)
		if reverse {
			slices.Reverse(it.own)
		}
	}
	return it, nil
}

// Next moves to the next key and reports whether there is one. After false, Err
// tells whether the walk ended early.
func (it *Iter) Next() bool {
	if it.base == nil || it.err != nil {
		return false
	}
	if it.err = it.store.Err(); it.err != nil {
		return false
	}
	it.advance()
	for {
		fromBase, fromOwn := it.pick()
		switch {
		case fromOwn:
			c := it.own[0]
			it.own = it.own[1:]
			if c.deleted {
				if fromBase {
					it.step()
				}
				continue
			}
			it.key, it.value, it.used = []byte(c.key), c.value, fromBase
			return true
		case !fromBase:
			it.fail(it.base.Error())
			return false
		case it.hidden(it.base.Key()):
			it.step()
		default:
			return it.takeBase()
		}
	}
}

// advance positions the base, or moves it off the key that was given last.
func (it *Iter) advance() {
	switch {
	case !it.placed && it.reverse:
		it.baseOK = it.base.Last()
	case !it.placed:
		it.baseOK = it.base.First()
	case it.used:
		it.step()
	}
	it.placed, it.used = true, false
}

// skipTo goes on with the first key that is not less than key. The walk is one
// forward, without a batch.
func (it *Iter) skipTo(key []byte) {
	it.baseOK, it.used = it.base.SeekGE(key), false
}

// step moves the base by one key in the direction of the walk.
func (it *Iter) step() {
	if it.reverse {
		it.baseOK = it.base.Prev()
	} else {
		it.baseOK = it.base.Next()
	}
}

// pick tells which of the two walks the next key comes from; both, if both hold it.
func (it *Iter) pick() (fromBase, fromOwn bool) {
	if len(it.own) == 0 {
		return it.baseOK, false
	}
	if !it.baseOK {
		return false, true
	}
	c := bytes.Compare([]byte(it.own[0].key), it.base.Key())
	if it.reverse {
		c = -c
	}
	return c >= 0, c <= 0
}

// hidden reports whether the batch deletes a range that holds key.
func (it *Iter) hidden(key []byte) bool {
	for _, r := range it.ranges {
		if r.lower <= string(key) && string(key) < r.upper {
			return true
		}
	}
	return false
}

// takeBase makes the base's key the present one. It copies key and value, because the
// base reuses their memory, unless the iterator borrows them.
func (it *Iter) takeBase() bool {
	v, err := it.base.ValueAndErr()
	if err != nil {
		it.fail(err)
		return false
	}
	it.key, it.value, it.used = it.base.Key(), v, true
	if !it.borrows {
		it.key, it.value = slices.Clone(it.key), slices.Clone(v)
	}
	return true
}

// fail keeps the first error, which is the end of the store.
func (it *Iter) fail(err error) {
	if err != nil && it.err == nil {
		it.err = it.store.fail(err)
	}
}

// Key is the present key without the prefix of its object.
func (it *Iter) Key() []byte { return it.key[it.strip:] }

// Value is the present value. It stays valid after the next move, unless the iterator borrows.
func (it *Iter) Value() []byte { return it.value }

// Err returns the error that ended the walk early, or nil.
func (it *Iter) Err() error { return it.err }

// Close releases the snapshot, which keeps old rows on disk as long as it is open. It
// may be called more than once, and returns the same error as Err.
func (it *Iter) Close() error {
	if it.base != nil {
		it.fail(it.base.Close())
		it.base = nil
	}
	return it.err
}

package object

import (
	"cmp"
	"slices"

	"github.com/holdfast-dev/holdfast/storage"
)

// buckets is where the marks of an object can be. It belongs to one life of the
// object, which its number names.
//
// Invariant: each bucket that holds a mark that has not expired is a member, and
// one that is indexed had its entry in the expiry index with a commit of before.
type buckets struct {
	number storage.Number
	all    []bucket // in the order of their removal
}

type bucket struct {
	removal int64
	indexed bool
}

// storedMark is a mark as a turn finds it.
type storedMark struct {
	value   []byte
	removal int64 // of its bucket; 0: there is none
	lives   bool  // it has not expired
}

// marked is a key that the turn has looked for, or set a mark under.
type marked struct {
	turn    *turn // nil: there is none
	key     string
	removal int64 // of the bucket of its mark; 0: it has none
}

// buckets returns the buckets of the turn's object, which it reads if it does not
// know them.
func (t *turn) buckets() (*buckets, error) {
	b, n, h := &t.recalls().buckets, t.object.Number, t.act.hosted.host
	if b.number == n {
		return b, nil
	}
	*b = buckets{number: n, all: b.all[:0]}
	if n != t.act.object.Number {
		return b, nil // the turn has made it, and nothing of it is stored
	}
	removals, err := h.store.Buckets(*t.object, h.seams.Clock.Now().UnixNano())
	if err != nil {
		*b = buckets{}
		return nil, err
	}
	for _, removal := range removals {
		b.all = append(b.all, bucket{removal, true})
	}
	return b, nil
}

// find looks for a mark in all buckets, those removed last first, since a mark that
// is asked for again is a new one mostly. One that has expired is returned if no
// other is found.
func (t *turn) find(key string) (found storedMark, err error) {
	b, err := t.buckets()
	if err != nil {
		return storedMark{}, err
	}
	h := t.act.hosted.host
	for _, in := range slices.Backward(b.all) {
		value, expires, ok, err := h.store.Mark(t.batch, *t.object, in.removal, key)
		if err != nil {
			return storedMark{}, err
		}
		if ok {
			found = storedMark{value, in.removal, h.seams.Clock.Now().UnixNano() < expires}
		}
		if found.lives {
			break
		}
	}
	return found, nil
}

// add makes the bucket a member, in place of those whose removal is over now. It
// reports whether the bucket is indexed.
func (b *buckets) add(removal, now int64) (indexed bool) {
	i, ok := b.place(removal)
	if !ok {
		over, _ := b.place(now)
		b.all = slices.Delete(slices.Insert(b.all, i, bucket{removal: removal}), 0, min(over, i))
		return false
	}
	return b.all[i].indexed
}

// setIndexed tells that the bucket's entry is stored.
func (b *buckets) setIndexed(removal int64) {
	if i, ok := b.place(removal); ok {
		b.all[i].indexed = true
	}
}

func (b *buckets) place(removal int64) (int, bool) {
	return slices.BinarySearchFunc(b.all, removal, func(b bucket, r int64) int { return cmp.Compare(b.removal, r) })
}

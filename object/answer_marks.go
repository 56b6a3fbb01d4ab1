package object

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/object/internal/bloom"
	"github.com/holdfast-dev/holdfast/storage"
)

// answerCache is the memory of an activation for its marks, and for the calls with an
// idempotency key that are under way. Answers under idempotency keys are marks too. The
// first look at a mark makes the cache, because most objects have no marks. Only the
// owner of the turn may touch it, so it has no mutex.
type answerCache struct {
	key  string               // that of the call that has the turn; empty: it has none
	lent map[string]*lentCall // by key: calls that have lent their turn out

	buckets buckets // survives turns and instances of the same object number
	// marked and indexing belong to one turn; forgetMarked empties them.
	marked   marked // the mark found or set last in this turn
	indexing int64  // the bucket that this turn puts in the expiry index; 0: none

	filter *filter // nil: there is none now
	reads  int     // how many more looks ask the store before a filter is begun
}

// answers returns the cache of the turn's activation.
func (t *turn) answers() *answerCache {
	if t.act.answers == nil {
		t.act.answers = &answerCache{reads: 1} // a single look is cheapest as one read
	}
	return t.act.answers
}

// lookUp returns the mark under key, as the turn has left it, and whether there is one
// that has not expired. Most keys are new to the object, so the filter is asked first: it
// answers for a new key without a read, once it knows the object's marks. lookUp notes
// the result in marked, because a mark under the same key is often set next.
func (t *turn) lookUp(key string) (value []byte, ok bool, err error) {
	lacks := false
	if f := t.filter(); f != nil {
		if lacks, err = f.lacks(t.act.host, *t.object, key); err != nil {
			return nil, false, err
		}
	}
	var found storedMark
	if !lacks {
		if found, err = t.find(key); err != nil {
			return nil, false, err
		}
	}
	t.answers().marked = marked{t, key, found.removal}
	return found.value, found.lives, nil
}

// bucketOf returns the bucket that holds the mark under key, which is named by the time
// of its removal in nanoseconds; 0 if none does. It reads nothing if the turn has just
// looked the key up.
func (t *turn) bucketOf(key string) (removal int64, err error) {
	if at := &t.answers().marked; at.turn != t || at.key != key {
		if _, _, err := t.lookUp(key); err != nil {
			return 0, err
		}
	}
	return t.answers().marked.removal, nil
}

// forgetMarked forgets the mark that the turn found or set last. It is called when the
// turn ends or its writes are committed or undone, and when other turns may have run
// meanwhile. A turn that does not hold its object must not touch the cache.
func (t *turn) forgetMarked() {
	if t.holds() {
		t.act.forgetMarked()
	}
}

// forgetMarked is turn.forgetMarked for a caller that owns the turn.
func (a *activation) forgetMarked() {
	if k := a.answers; k != nil {
		k.marked, k.indexing = marked{}, 0
	}
}

// remember adds a mark that the turn sets to the filter. It does so before the commit,
// because a mark in the filter that is never stored only costs a read, but a stored mark
// that is missing in the filter would be taken for new: a call would run twice.
func (t *turn) remember(key string) {
	if k := t.answers(); t.holds() && k.filter != nil {
		k.filter.add(maphash.String(markSeed, key))
	}
}

// filter returns the filter of the turn's instance, or nil if it has none now: at the
// first look, while the turn has writes that are not in the store, and after the filter
// became full. A full filter is begun again after as many looks as it had members, so
// that its load at most doubles the reads.
func (t *turn) filter() *filter {
	k := t.answers()
	if f := k.filter; f != nil {
		if f.state == t.state && !f.full {
			return f
		}
		if f.full {
			k.reads = max(f.set.Len(), filterPiece)
		}
		f.leave()
		k.filter = nil
	}
	switch {
	case t.batch != nil && !t.batch.Empty():
		return nil // a load from the store would miss the marks in the turn's batch
	case k.reads > 0:
		k.reads--
		return nil
	}
	f := &filter{state: t.state, budget: &t.act.host.filterBudget, loaded: t.object.Number == 0}
	t.state.onEnd(&f.canceller, f.release)
	k.filter = f
	return f
}

// filter knows which marks an object may have, so that a look for a new mark reads
// nothing from the store. It took an event with an id for a debounce from 36 to 23 µs of
// processor time and from 19.6 to 14 allocations, with 1,000 objects. A filter belongs to
// one instance, and no other sets marks of the object meanwhile.
//
// It loads the stored marks in pieces, one piece with each look, in the order of their
// buckets and keys.
//
// Invariant: each mark that is stored and has not expired, up to the one that was
// read last, or any if loaded, is a member. So is each mark that was set since the
// filter began.
//
// The owner of the turn uses it without a mutex, except for the bytes it holds, because
// the instance may go, and release run, on any goroutine.
type filter struct {
	state     *State
	canceller canceller // calls release when the instance goes
	budget    *filterBudget
	set       bloom.Set

	loaded bool   // all stored marks have been read
	bucket int64  // of the mark that was read last: when it is removed
	after  string // the key of that mark
	full   bool   // a mark found no room, so that the filter cannot exclude any key

	mu    sync.Mutex
	held  int64 // bytes of the budget; guarded by mu
	ended bool  // it holds none and gets no more; guarded by mu
}

// markSeed is random in each process, so that an attacker cannot choose ids that collide.
var markSeed = maphash.MakeSeed()

const (
	// filterPiece is how many stored marks a look reads until all are known.
	filterPiece = 32
	// filterBytes bounds the filters of a host together. One of them takes a
	// quarter at most, which is enough for 2.7 million marks. Objects without
	// room for their filter read the store.
	filterBytes = 32 << 20
)

// lacks reports whether the object has no mark under key, for certain. If not all marks
// are loaded, it loads the next piece first.
func (f *filter) lacks(h *Host, o storage.Object, key string) (bool, error) {
	if !f.loaded {
		if f.bucket == 0 {
			f.bucket = h.seams.Clock.Now().UnixNano() // marks in earlier buckets have expired
		}
		last, err := h.store.Marks(o, f.bucket, f.after, filterPiece, func(removal int64, key []byte) {
			f.add(maphash.Bytes(markSeed, key))
			f.bucket, f.after = removal, string(key)
		})
		if err != nil {
			return false, err
		}
		f.loaded = last
	}
	return f.loaded && !f.full && !f.set.Has(maphash.String(markSeed, key)), nil
}

// add makes a mark a member, by its hash. If the set has no room and the budget has none
// either, the filter becomes full.
func (f *filter) add(hash uint64) {
	switch {
	case f.full || f.set.Has(hash):
		return
	case f.set.Full() && !f.take(f.set.NextBytes()):
		f.full = true
		return
	case f.set.Full():
		f.set.Grow()
	}
	f.set.Add(hash)
}

// take takes n bytes from the budget and reports whether it got them. One filter gets at
// most a quarter of the budget, and a filter that has ended gets nothing.
func (f *filter) take(n int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || f.held+n > f.budget.total/4 || !f.budget.take(n) {
		return false
	}
	f.held += n
	return true
}

// leave ends the filter while its instance goes on.
func (f *filter) leave() {
	f.canceller.forget()
	f.release(nil)
}

// release gives the bytes of the filter back to the budget. It may be called from any
// goroutine, and more than once.
func (f *filter) release(error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.budget.used.Add(-f.held)
	f.held, f.ended = 0, true
}

// filterBudget bounds the bytes that the filters of a host take together.
type filterBudget struct {
	total int64        // set by Open, constant after it
	used  atomic.Int64 // never more than total, except for the moment of a take that fails
}

// take takes n bytes if they are left. Any goroutine may call it.
func (b *filterBudget) take(n int64) bool {
	if b.used.Add(n) > b.total {
		b.used.Add(-n)
		return false
	}
	return true
}

// buckets lists where the marks of an object can be. Marks that expire closely together
// share a bucket and its one entry in the expiry index, which took the log of a call with
// an idempotency key from 138 to 106 bytes. The buckets belong to one number of the
// object, so an object that was deleted and made again begins with none.
//
// Invariant: each bucket that holds a mark that has not expired is a member. The entry of
// a bucket with indexed set is in the expiry index since an earlier commit.
type buckets struct {
	number storage.Number
	all    []bucket // in the order of their removal
}

// bucket is one place for marks. Its name is the time of its removal.
type bucket struct {
	removal int64 // in nanoseconds of the Unix epoch: all its marks have expired by then
	indexed bool  // a commit has stored its entry in the expiry index
}

// storedMark is a mark as find read it.
type storedMark struct {
	value   []byte
	removal int64 // of its bucket; 0: there is none
	lives   bool  // it has not expired
}

// marked is the key that the turn has looked up or set last. setMark needs the bucket of
// the older mark, and takes it from here if the same key was looked up.
type marked struct {
	turn    *turn // nil: there is none
	key     string
	removal int64 // of the bucket of its mark; 0: it has none
}

// buckets returns the buckets of the turn's object. It reads them from the store if the
// cache has those of another number, or none.
func (t *turn) buckets() (*buckets, error) {
	b, n, h := &t.answers().buckets, t.object.Number, t.act.host
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

// find reads the mark under key from the store, with the writes of the turn. It looks in
// all buckets, those removed last first, because a repeat mostly comes soon after its
// first call. A mark that has expired is returned if there is no other, because setMark
// must delete it.
func (t *turn) find(key string) (found storedMark, err error) {
	b, err := t.buckets()
	if err != nil {
		return storedMark{}, err
	}
	h := t.act.host
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

// add makes the bucket a member, and drops those that were due for removal before now. It
// reports whether the bucket has its entry in the expiry index.
func (b *buckets) add(removal, now int64) (indexed bool) {
	i, ok := b.place(removal)
	if !ok {
		over, _ := b.place(now)
		b.all = slices.Delete(slices.Insert(b.all, i, bucket{removal: removal}), 0, min(over, i))
		return false
	}
	return b.all[i].indexed
}

// setIndexed notes that a commit has stored the bucket's entry in the expiry index.
func (b *buckets) setIndexed(removal int64) {
	if i, ok := b.place(removal); ok {
		b.all[i].indexed = true
	}
}

// place returns the index of the bucket, or the index at which it would be inserted.
func (b *buckets) place(removal int64) (int, bool) {
	return slices.BinarySearchFunc(b.all, removal, func(b bucket, r int64) int { return cmp.Compare(b.removal, r) })
}

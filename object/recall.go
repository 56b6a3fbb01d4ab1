package object

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/storage"
)

// recall is what an activation keeps in memory of its marks and of the calls with
// idempotency keys. It is made by the first look at a mark. The owner of the turn
// alone may touch it.
type recall struct {
	key  string               // that of the call that has the turn; empty: it has none
	lent map[string]*lentCall // by key: calls that have lent their turn out

	buckets  buckets
	marked   marked // in the state that the turn which has the object leaves
	indexing int64  // the bucket that this turn puts in the expiry index; 0: none

	filter *filter // nil: there is none now
	reads  int     // how many more looks ask the store before a filter is begun
}

// recalls returns the recall of the turn's activation.
func (t *turn) recalls() *recall {
	if t.act.recall == nil {
		t.act.recall = &recall{reads: 1} // a single look is cheapest as one read
	}
	return t.act.recall
}

// lookUp returns the mark under key, as the turn leaves it, and whether there is one
// that has not expired. A key that is new to the object is the usual case, and costs
// no read once the filter knows the object's marks.
func (t *turn) lookUp(key string) (value []byte, ok bool, err error) {
	lacks := false
	if f := t.filter(); f != nil {
		if lacks, err = f.lacks(t.act.hosted.host, *t.object, key); err != nil {
			return nil, false, err
		}
	}
	var found storedMark
	if !lacks {
		if found, err = t.find(key); err != nil {
			return nil, false, err
		}
	}
	t.recalls().marked = marked{t, key, found.removal}
	return found.value, found.lives, nil
}

// bucketOf returns when the bucket that holds the mark under key is removed; 0 if
// none does.
func (t *turn) bucketOf(key string) (removal int64, err error) {
	if at := &t.recalls().marked; at.turn != t || at.key != key {
		if _, _, err := t.lookUp(key); err != nil {
			return 0, err
		}
	}
	return t.recalls().marked.removal, nil
}

// forgetMarked forgets what the turn has found and set, which something has undone,
// committed or may have changed.
func (t *turn) forgetMarked() {
	if t.holds() {
		t.act.forgetMarked()
	}
}

func (a *activation) forgetMarked() {
	if k := a.recall; k != nil {
		k.marked, k.indexing = marked{}, 0
	}
}

// remember tells the filter of a mark that the turn sets. It comes before the
// commit: a mark that is never stored costs a read, one that is stored and not
// known would be taken for new.
func (t *turn) remember(key string) {
	if k := t.recalls(); t.holds() && k.filter != nil {
		k.filter.add(maphash.String(markSeed, key))
	}
}

// filter returns the filter of the turn's life, or nil if it has none now.
func (t *turn) filter() *filter {
	k := t.recalls()
	if f := k.filter; f != nil {
		if f.life == t.life && !f.full {
			return f
		}
		if f.full {
			k.reads = max(f.set.n, filterPiece)
		}
		f.leave()
		k.filter = nil
	}
	switch {
	case t.batch != nil && !t.batch.Empty():
		return nil // what the turn has set so far would not be found in the store
	case k.reads > 0:
		k.reads--
		return nil
	}
	f := &filter{life: t.life, budget: &t.act.hosted.host.recalls, loaded: t.object.Number == 0}
	t.life.onEnd(&f.ending, f.release)
	k.filter = f
	return f
}

// filter knows which marks an object may have. It belongs to one life of an
// activation, the only one that sets marks of the object meanwhile.
//
// Invariant: each mark that is stored and has not expired, up to the one that was
// read last, or any if loaded, is a member, and so is each that was set since the
// filter began.
type filter struct {
	life   *State
	ending ending // release, at the end of the life
	budget *recallBudget
	set    bloom

	loaded bool   // all stored marks have been read
	bucket int64  // of the last that was read: when it is removed
	after  string // its key
	full   bool   // some mark found no room: the filter is of no use

	mu    sync.Mutex
	held  int64 // bytes of the budget
	ended bool  // it holds none and gets no more
}

// markSeed is of this process, so that nobody can choose ids that collide.
var markSeed = maphash.MakeSeed()

const (
	// filterPiece is how many stored marks a look reads until all are known.
	filterPiece = 32
	// recallBytes bounds the filters of a host together. One of them takes a
	// quarter at most, which is enough for 2.7 million marks. Objects without
	// room for their filter read the store.
	recallBytes = 32 << 20
)

// lacks reports whether the object has no mark under key, for certain.
func (f *filter) lacks(h *Host, o storage.Object, key string) (bool, error) {
	if !f.loaded {
		if f.bucket == 0 {
			f.bucket = h.seams.Clock.Now().UnixNano() // all that go earlier have expired
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
	return f.loaded && !f.full && !f.set.has(maphash.String(markSeed, key)), nil
}

// add makes a mark known.
func (f *filter) add(hash uint64) {
	switch {
	case f.full || f.set.has(hash):
		return
	case f.set.room == 0 && !f.take(f.set.nextBytes()):
		f.full = true
		return
	case f.set.room == 0:
		f.set.grow()
	}
	f.set.add(hash)
}

// take takes bytes from the budget, if it has them.
func (f *filter) take(n int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || f.held+n > f.budget.total/4 || !f.budget.take(n) {
		return false
	}
	f.held += n
	return true
}

// leave ends the filter before its life ends.
func (f *filter) leave() {
	f.ending.forget()
	f.release(nil)
}

// release gives back what the filter holds. It may be called from any task, and
// more than once.
func (f *filter) release(error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.budget.used.Add(-f.held)
	f.held, f.ended = 0, true
}

// recallBudget is the bytes that the filters of a host may take.
type recallBudget struct {
	total int64
	used  atomic.Int64
}

func (b *recallBudget) take(n int64) bool {
	if b.used.Add(n) > b.total {
		b.used.Add(-n)
		return false
	}
	return true
}

// lentCall is a call with an idempotency key that has lent its turn out.
type lentCall struct {
	turn *turn
	back chan struct{} // closed when the call has its turn back
}

// lend tells of the call that has the turn, if it has a key, that it lends the
// turn out: repeats wait until it has it back.
func (k *recall) lend(t *turn) (key string, first *lentCall) {
	if k == nil || k.key == "" {
		return "", nil
	}
	key, k.key = k.key, ""
	first = &lentCall{t, make(chan struct{})}
	if k.lent == nil {
		k.lent = make(map[string]*lentCall)
	}
	k.lent[key] = first
	return key, first
}

// resume takes back lend. The call has its turn again.
func (k *recall) resume(key string) {
	if key != "" {
		delete(k.lent, key)
		k.key = key
	}
}

package inbox

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/storage"
)

// LaterCounts bounds from above how many messages each receiver has that are in no box, in
// a memory that does not grow with the receivers: those of the index by time, and all of a class that
// is not registered. A bucket counts the messages of all receivers
// with its hash. If a bucket has too many, Count tells how many one receiver has. Count reads
// the store only for the first time, because it remembers the receivers that it has counted.
type LaterCounts struct {
	buckets atomic.Pointer[[laterBuckets]atomic.Int64] // nil: there are no such messages

	some  atomic.Bool // counts were remembered
	mu    sync.Mutex  // guards the fields below; not held while the store is read
	known map[storage.ID]*laterCount
	order []storage.ID // of known, a ring: the oldest is at next once it is full
	next  int
}

// laterCount is how many messages of the index by time one receiver has. A commit that is under
// way while they are counted may be in the count or not. So messages that were numbered before the
// end of the count are left out, and those that are removed by commits behind its begin are
// subtracted: n is never too large. It is too small by the messages of such commits at most. A
// ticket would not do for the first: a commit gets it only after the count can see its messages.
type laterCount struct {
	n      int
	before storage.Ticket // of the newest commit before the count began; the count has all up to it
	after  uint64         // a number that was drawn when it had ended; counting until then
}

// counting is greater than each number.
const counting = math.MaxUint64

// remembered is for how many receivers LaterCounts remembers a count.
const remembered = 1024

// laterBuckets is enough for the default of ClassOptions.MaxWaiting: with Options.MaxMessages
// in the store, a bucket has few thousand messages, unless one receiver has that many.
const laterBuckets = 4096

// laterSeed is that of the hashes. The result of no call depends on it beyond the bound of Most.
var laterSeed = maphash.MakeSeed()

// Add counts n messages to a receiver. seq is a number that Order.NextSeq has returned before
// the commit that has stored them, or 0 for messages of earlier openings.
func (c *LaterCounts) Add(to storage.ID, n int, seq uint64) {
	c.change(to, n, func(k *laterCount) bool { return seq > k.after })
}

// Remove counts out n messages to a receiver, which the commit at has removed.
func (c *LaterCounts) Remove(to storage.ID, n int, at storage.Ticket) {
	c.change(to, -n, func(k *laterCount) bool { return at > k.before })
}

// change counts n messages more. counts reports whether a count that is remembered lacks them.
func (c *LaterCounts) change(to storage.ID, n int, counts func(*laterCount) bool) {
	if n == 0 {
		return
	}
	if c.buckets.Load() == nil {
		c.buckets.CompareAndSwap(nil, new([laterBuckets]atomic.Int64))
	}
	c.bucket(to).Add(int64(n))
	if !c.some.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.known[to]; k != nil && counts(k) {
		k.n += n
	}
}

// Order is the order of the commits of a store. NextSeq returns a number that is greater than all
// before, and Applied the ticket of the newest commit.
type Order interface {
	NextSeq() uint64
	Applied() storage.Ticket
}

// Count returns how many messages of the index by time a receiver has. It calls read for that,
// unless it remembers the receiver.
func (c *LaterCounts) Count(to storage.ID, order Order, read func() (int, error)) (int, error) {
	c.mu.Lock()
	if k := c.known[to]; k != nil && k.after != counting {
		defer c.mu.Unlock()
		return k.n, nil
	}
	k := c.remember(to)
	c.some.Store(true)
	k.before = order.Applied()
	c.mu.Unlock()
	n, err := read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		delete(c.known, to)
		return 0, err
	}
	k.n += n
	k.after = order.NextSeq()
	return k.n, nil
}

// remember makes an empty count of a receiver, and forgets the oldest if there are too many. The
// caller holds mu.
func (c *LaterCounts) remember(to storage.ID) *laterCount {
	if c.known == nil {
		c.known = make(map[storage.ID]*laterCount)
	}
	k := &laterCount{after: counting}
	c.known[to] = k
	if len(c.order) < remembered {
		c.order = append(c.order, to)
		return k
	}
	if old := c.order[c.next]; old != to {
		delete(c.known, old)
	}
	c.order[c.next] = to
	c.next = (c.next + 1) % remembered
	return k
}

// Most is not less than the number of messages to a receiver.
func (c *LaterCounts) Most(to storage.ID) int {
	if c.buckets.Load() == nil {
		return 0
	}
	return int(c.bucket(to).Load())
}

func (c *LaterCounts) bucket(to storage.ID) *atomic.Int64 {
	hash := maphash.String(laterSeed, to.Name) ^ maphash.String(laterSeed, to.Class)
	return &c.buckets.Load()[hash%laterBuckets]
}

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

// laterCount is how many messages of the index by time one receiver has. Commits that end while
// they are counted may be in the count or not. It leaves out such messages, and subtracts those
// that such commits remove, so n is never too large. It is too small by those at most.
type laterCount struct {
	n      int
	before storage.Ticket // of the newest commit before the count began; the count has all up to it
	after  storage.Ticket // of the newest commit when it had ended; counting until then
}

// counting is later than each ticket.
const counting = storage.Ticket(math.MaxUint64)

// remembered is for how many receivers LaterCounts remembers a count.
const remembered = 1024

// laterBuckets is enough for the default of ClassOptions.MaxWaiting: with Options.MaxMessages
// in the store, a bucket has few thousand messages, unless one receiver has that many.
const laterBuckets = 4096

// laterSeed is that of the hashes. The result of no call depends on it beyond the bound of Most.
var laterSeed = maphash.MakeSeed()

// Add counts n messages to a receiver, which the commit at has stored; n is negative if it has
// removed them. at is 0 for messages of earlier openings.
func (c *LaterCounts) Add(to storage.ID, n int, at storage.Ticket) {
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
	if k := c.known[to]; k != nil && (n < 0 && at > k.before || n > 0 && at > k.after) {
		k.n += n
	}
}

// Count returns how many messages of the index by time a receiver has. It calls read for that,
// unless it remembers the receiver, and applied, which returns the newest ticket, before and after.
func (c *LaterCounts) Count(to storage.ID, applied func() storage.Ticket, read func() (int, error)) (int, error) {
	c.mu.Lock()
	if k := c.known[to]; k != nil && k.after != counting {
		defer c.mu.Unlock()
		return k.n, nil
	}
	k := c.remember(to)
	c.some.Store(true)
	k.before = applied()
	c.mu.Unlock()
	n, err := read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		delete(c.known, to)
		return 0, err
	}
	k.n += n
	k.after = applied()
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

package alarm

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
	"github.com/holdfast-dev/holdfast/seam"
)

// seenClock is the wall clock, and the latest time that it has told. The wall clock may be
// set while the test runs, so an alarm is early only if that time is before it.
type seenClock struct {
	seam.Clock
	latest atomic.Int64
}

func (c *seenClock) Now() time.Time {
	now := c.Clock.Now()
	for n := Nanos(now); ; {
		was := c.latest.Load()
		if n <= was || c.latest.CompareAndSwap(was, n) {
			return now
		}
	}
}

// crowd is a host on real goroutines: each fired object gets a turn of its own,
// which sets the object's next alarm until it has had enough of them.
type crowd struct {
	t     *testing.T
	s     *Scheduler
	clock *seenClock
	turns sync.WaitGroup

	mu    sync.Mutex // guards the index and the counts
	x     *index
	count map[uint64]int
	left  int
	all   chan struct{} // closed when left is 0
}

const crowdRounds = 20

func (c *crowd) Scan(shard int, after Position, limit int) ([]Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.x.Scan(shard, after, limit)
}

func (c *crowd) fire(batch []Entry) {
	for _, e := range batch {
		c.turns.Add(1)
		go c.turn(e)
	}
}

func (c *crowd) turn(e Entry) {
	defer c.turns.Done()
	if Nanos(e.Due) > c.clock.latest.Load() {
		c.t.Errorf("%v fired early", e)
	}
	next, again := c.commit(e)
	if again {
		c.s.Set(next)
	} else {
		c.s.Clear(e.Shard, e.Object)
	}
	c.s.Done(e)
}

// commit handles an alarm. An entry that differs from the stored one is stale; commit
// then reports the stored entry once more, which changes nothing.
func (c *crowd) commit(e Entry) (next Entry, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	row, ok := c.x.get(e.Shard, e.Object)
	if !ok || row.Gen != e.Gen {
		return row, ok
	}
	c.left--
	if c.left == 0 {
		close(c.all)
	}
	if c.count[e.Object]++; c.count[e.Object] == crowdRounds {
		c.x.delete(e.Shard, e.Object)
		return Entry{}, false
	}
	next = e
	next.Gen++
	next.Due = time.Now().Add(time.Duration(e.Object%3) * time.Millisecond)
	c.x.put(next)
	return next, true
}

func TestManyGoroutines(t *testing.T) {
	defer leaks.None(t)
	const objects = 300
	clock := &seenClock{Clock: seam.Seams{}.WithDefaults().Clock}
	c := &crowd{t: t, clock: clock, x: newIndex(), count: make(map[uint64]int), left: objects * crowdRounds, all: make(chan struct{})}
	var err error
	c.s, err = NewScheduler(Config{
		Seams: seam.Seams{Clock: clock}, Shards: 4, LookAhead: 8, InFlight: 32, Batch: 8,
		Source: c, Fire: c.fire, OnError: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for o := range uint64(objects / 2) {
		c.x.put(c.first(o))
	}
	c.s.Start()
	var setters sync.WaitGroup
	for g := range uint64(2) {
		setters.Go(func() {
			for o := uint64(objects/2) + g; o < objects; o += 2 {
				c.setFirst(o)
			}
		})
	}
	setters.Wait()
	<-c.all
	c.turns.Wait()
	if st := c.s.Stats(); st != (Stats{}) {
		t.Errorf("at the end: %+v", st)
	}
	c.s.Stop()
}

// setFirst reports before anybody can commit another alarm of the object.
func (c *crowd) setFirst(o uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.first(o)
	c.x.put(e)
	c.s.Set(e)
}

func (c *crowd) first(o uint64) Entry {
	return Entry{Due: time.Now(), Shard: int(o % 4), Object: o, Gen: 1, Class: "c"}
}

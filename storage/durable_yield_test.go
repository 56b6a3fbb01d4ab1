package storage

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A leader yields before it syncs, so its sync serves what is committed meanwhile.
func TestLeaderYields(t *testing.T) {
	s, engine, begun := stubStore(t)
	defer checkAndClose(t, s)
	entered, let := make(chan struct{}), make(chan struct{})
	engine.syncs.Store(0)
	engine.sync = func() error {
		if engine.syncs.Load() == 1 {
			close(entered)
			<-let
		}
		return engine.Engine.Sync()
	}
	commit := func(name string) Ticket {
		ticket, err := s.Commit(metaBatch(name, 10))
		if err != nil {
			t.Error(err)
		}
		return ticket
	}
	yields := 0
	var meanwhile Ticket
	s.pipeline.yielding.yield = func() {
		if n := int(engine.syncs.Load()); n != yields {
			t.Errorf("a leader yields %d times before %d syncs", yields, n)
		}
		yields++
		meanwhile = commit(fmt.Sprint("meanwhile", yields))
	}
	var done sync.WaitGroup
	call := func(name string) {
		if err := s.WaitDurable(commit(name)); err != nil {
			t.Error(err)
		}
	}
	done.Go(func() { call("first") })
	<-entered
	done.Go(func() { call("second") })
	<-begun
	close(let)
	done.Wait()
	if n := engine.syncs.Load(); n != 2 || yields != 2 || !s.Durable(meanwhile) {
		t.Errorf("%d syncs and %d yields, and what was committed meanwhile is durable: %v", n, yields, s.Durable(meanwhile))
	}
}

// A yield may take 200 µs for each commit that is applied meanwhile, and for one more. One that takes longer is the last
// one for twenty times as long.
func TestYieldsThatTakeLongPause(t *testing.T) {
	for _, commits := range []int{0, 1, 50} {
		clock := &manualClock{now: time.Unix(1000, 0)}
		o := memOptions(vfs.NewMem())
		o.Seams.Clock = clock
		s := open(t, o)
		yields, takes := 0, time.Duration(0)
		s.pipeline.yielding.yield = func() {
			yields++
			clock.now = clock.now.Add(takes)
			for i := range commits {
				if _, err := s.Commit(metaBatch(fmt.Sprint(i), 10)); err != nil {
					t.Error(err)
				}
			}
		}
		yieldsAfter := func(d time.Duration) int {
			clock.now = clock.now.Add(d)
			s.pipeline.yield()
			return yields
		}
		limit := time.Duration(commits+1) * 200 * time.Microsecond
		takes = limit
		if yieldsAfter(0) != 1 || yieldsAfter(0) != 2 {
			t.Errorf("%d commits: %d yields that took %v", commits, yields, takes)
		}
		takes = limit + 1
		if yieldsAfter(0) != 3 || yieldsAfter(0) != 3 || yieldsAfter(20*takes-1) != 3 || yieldsAfter(1) != 4 {
			t.Errorf("%d commits: %d yields after one that took %v", commits, yields, takes)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

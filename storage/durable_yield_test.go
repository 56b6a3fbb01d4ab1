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
		limit := time.Duration(commits+1) * 200 * time.Microsecond
		for i, step := range []struct{ after, takes time.Duration }{
			{0, limit}, {0, limit}, {0, limit + 1}, // each yields
			{0, limit}, {20*(limit+1) - 1, limit}, // neither does
			{1, limit}, {0, limit},
		} {
			clock.now, takes = clock.now.Add(step.after), step.takes
			s.pipeline.yield()
			if want := []int{1, 2, 3, 3, 3, 4, 5}[i]; yields != want {
				t.Errorf("%d commits, step %d: %d yields, want %d", commits, i, yields, want)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// stubEngine is an engine with a Sync and an Apply that a test may replace.
type stubEngine struct {
	engine.Engine
	syncs atomic.Int64
	sync  func() error
	apply func([]byte) error
}

func (e *stubEngine) Sync() error {
	e.syncs.Add(1)
	if e.sync != nil {
		return e.sync()
	}
	return e.Engine.Sync()
}

func (e *stubEngine) Apply(repr []byte) error {
	if e.apply != nil {
		if err := e.apply(repr); err != nil {
			return err
		}
	}
	return e.Engine.Apply(repr)
}

// waits counts the tasks that have begun to wait.
type waits struct {
	seam.Executor
	begun chan struct{}
}

func (w waits) Wait(ctx context.Context, ready <-chan struct{}) error {
	w.begun <- struct{}{}
	return w.Executor.Wait(ctx, ready)
}

// stubStore opens a store over a stub, and tells on the channel of each wait.
func stubStore(t *testing.T) (*Store, *stubEngine, chan struct{}) {
	db, err := pebblestore.Open("db", smallPebble(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	stub := &stubEngine{Engine: db}
	begun := make(chan struct{}, 1000)
	o := Options{Engine: stub, Shards: 4, MaxUnsyncedBytes: 1000}
	o.Seams.Clock = &manualClock{now: time.Unix(1000, 0)} // stands, so that no yield takes long
	o.Seams.Executor = waits{seam.Seams{}.WithDefaults().Executor, begun}
	return open(t, o), stub, begun
}

// metaBatch is a batch of n bytes or a little more.
func metaBatch(name string, n int) *Batch {
	var b Batch
	b.SetMeta(name, make([]byte, n))
	return &b
}

// One sync serves every caller that came before it began. A hundred callers need two
// syncs: the one under way when they came, and one more. Readers of the commits of others
// share it.
func TestOneSyncServesMany(t *testing.T) {
	const callers = 100
	s, engine, begun := stubStore(t)
	defer checkAndClose(t, s)
	engine.syncs.Store(0)
	entered, let := make(chan struct{}), make(chan struct{})
	engine.sync = func() error {
		if engine.syncs.Load() == 1 {
			close(entered)
			<-let
		}
		return engine.Engine.Sync()
	}
	var done sync.WaitGroup
	call := func(i int) {
		ticket, err := s.Commit(metaBatch(fmt.Sprint(i), 10))
		if err != nil {
			t.Error(err)
		}
		if err := s.WaitDurable(ticket); err != nil || !s.Durable(ticket) {
			t.Errorf("ticket %d: %v, durable %v", ticket, err, s.Durable(ticket))
		}
	}
	read := func() {
		if err := s.WaitSeen(t.Context()); err != nil || engine.syncs.Load() < 2 {
			t.Errorf("a reader waited for %d syncs: %v", engine.syncs.Load(), err)
		}
	}
	done.Go(func() { call(0) })
	<-entered
	for i := range callers - 1 {
		done.Go(func() { call(i + 1) })
		done.Go(read)
	}
	for range 2 * (callers - 1) {
		<-begun
	}
	close(let)
	done.Wait()
	if got := engine.syncs.Load(); got != 2 {
		t.Errorf("%d callers and as many readers took %d syncs, want 2", callers, got)
	}
	if s.pipeline.unsynced.Load() != 0 || s.Congested() {
		t.Errorf("%d bytes are left over", s.pipeline.unsynced.Load())
	}
}

// With any number of callers, each commit is durable when its wait ends: it was synced
// after it was applied. Proves S9.
func TestWaitMeansSynced(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, engine, _ := stubStore(t)
		var applied, synced atomic.Int64 // in numbers of batches
		engine.apply = func([]byte) error { applied.Add(1); return nil }
		engine.sync = func() error {
			n := applied.Load()
			for {
				old := synced.Load()
				if old >= n || synced.CompareAndSwap(old, n) {
					return engine.Engine.Sync()
				}
			}
		}
		commits := rapid.IntRange(1, 20).Draw(rt, "commits")
		var done sync.WaitGroup
		for g := range rapid.IntRange(1, 8).Draw(rt, "callers") {
			done.Go(func() {
				for i := range commits {
					ticket, err := s.Commit(metaBatch(fmt.Sprint(g), i))
					if err == nil {
						err = s.WaitDurable(ticket)
					}
					if base := int64(1); err != nil || synced.Load()+base < int64(ticket) {
						rt.Errorf("ticket %d is reported durable, %v, with %d synced", ticket, err, synced.Load())
					}
				}
			})
		}
		done.Wait()
		checkAndClose(t, s)
	})
}

// A failed sync is the end for every caller that waits and every later one. Proves O13's
// storage side and S9.
func TestFailedSyncAcknowledgesNobody(t *testing.T) {
	const callers = 100
	s, engine, begun := stubStore(t)
	early, err := s.Commit(metaBatch("early", 1))
	if err == nil {
		err = s.WaitDurable(early)
	}
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is broken")
	entered, let := make(chan struct{}), make(chan struct{})
	engine.sync = func() error {
		close(entered)
		<-let
		return broken
	}
	var done sync.WaitGroup
	call := func(i int) {
		ticket, err := s.Commit(metaBatch(fmt.Sprint(i), 1))
		if err == nil {
			err = s.WaitDurable(ticket)
		}
		if !errors.Is(err, ErrStorage) || !errors.Is(err, broken) || s.Durable(ticket) {
			t.Errorf("caller %d: %v, durable %v", i, err, s.Durable(ticket))
		}
	}
	done.Go(func() { call(0) })
	<-entered
	for i := range callers - 1 {
		done.Go(func() { call(i + 1) })
	}
	for range callers - 1 {
		<-begun
	}
	close(let)
	done.Wait()
	wantDead(t, s, broken)
	if !s.Durable(early) {
		t.Error("a commit that was durable before is not any more")
	}
	engine.sync = nil
	if err := s.Close(); !errors.Is(err, broken) || strings.Contains(err.Error(), "\n") {
		t.Errorf("Close of a dead store: %v", err)
	}
}

// wantDead checks that the store ended with cause and refuses every use.
func wantDead(t *testing.T, s *Store, cause error) {
	t.Helper()
	<-s.Dead()
	uses := map[string]error{"Err": s.Err(), "WaitDurable": s.WaitDurable(1), "Check": s.Check()}
	_, uses["Commit"] = s.Commit(metaBatch("late", 1))
	_, _, uses["Meta"] = s.Meta("late")
	for use, err := range uses {
		if !errors.Is(err, ErrStorage) || !errors.Is(err, cause) {
			t.Errorf("%s of a dead store: %v", use, err)
		}
	}
}

// A failed Apply ends the store too, also for callers that wait at that moment.
func TestFailedApplyEndsTheStore(t *testing.T) {
	s, engine, begun := stubStore(t)
	broken := errors.New("the disk is broken")
	entered, let := make(chan struct{}), make(chan struct{})
	engine.sync = func() error {
		close(entered)
		<-let
		return nil
	}
	ticket, err := s.Commit(metaBatch("first", 1))
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() { s.WaitDurable(ticket) }) // leads; the outcome may be either
	<-entered
	second, err := s.Commit(metaBatch("second", 1))
	if err != nil {
		t.Fatal(err)
	}
	done.Go(func() {
		if err := s.WaitDurable(second); !errors.Is(err, broken) {
			t.Errorf("the waiter: %v", err)
		}
	})
	<-begun
	engine.apply = func([]byte) error { return broken }
	if _, err := s.Commit(metaBatch("third", 1)); !errors.Is(err, broken) || !errors.Is(err, ErrStorage) {
		t.Errorf("the failing commit: %v", err)
	}
	close(let)
	done.Wait()
	wantDead(t, s, broken)
	s.Abandon()
}

// Congested reports bytes that wait for a sync, and no longer when it is done.
func TestCongested(t *testing.T) {
	s, _, _ := stubStore(t)
	defer checkAndClose(t, s)
	var last Ticket
	for i := range 3 { // of 400 bytes and a little; the limit is 1000
		if s.Congested() {
			t.Errorf("congested after %d commits", i)
		}
		var err error
		if last, err = s.Commit(metaBatch("k", 400)); err != nil {
			t.Fatal(err)
		}
	}
	if !s.Congested() || s.Pending() != 3 {
		t.Errorf("not congested with %d bytes; %d commits pending", s.pipeline.unsynced.Load(), s.Pending())
	}
	if err := s.WaitDurable(last); err != nil {
		t.Fatal(err)
	}
	if s.Congested() || s.Pending() != 0 {
		t.Errorf("congested after the sync; %d commits pending", s.Pending())
	}
}

// An empty commit depends on all before it and adds nothing.
func TestEmptyCommit(t *testing.T) {
	s, engine, _ := stubStore(t)
	defer checkAndClose(t, s)
	last, err := s.Commit(metaBatch("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	engine.apply = func([]byte) error { return errors.New("an empty batch was applied") }
	if ticket, err := s.Commit(new(Batch)); err != nil || ticket != last {
		t.Errorf("ticket %d, %v; want %d", ticket, err, last)
	}
	engine.apply = nil
	if err := s.WaitDurable(0); err != nil || !s.Durable(0) {
		t.Errorf("the zero ticket: %v", err)
	}
}

// The points where a crash can matter are announced in order, with the object
// that the batch is for.
func TestProbePoints(t *testing.T) {
	var got []string
	o := memOptions(vfs.NewMem())
	probe := &recorder{}
	o.Seams.Probe = probe
	s := open(t, o)
	probe.points = nil
	b := metaBatch("k", 1)
	b.For(ID{"cart", "alice"})
	ticket, err := s.Commit(b)
	if err == nil {
		err = s.WaitDurable(ticket)
	}
	if err != nil {
		t.Fatal(err)
	}
	got = probe.points
	want := "commit/before cart/alice, commit/after cart/alice, sync/before , sync/after "
	if strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	checkAndClose(t, s)
}

type recorder struct{ points []string }

func (r *recorder) At(p seam.Point) { r.points = append(r.points, p.Name+" "+p.Object) }

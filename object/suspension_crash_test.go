package object_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/internal/testing/silent"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// Proves A8 over a log. An alarm that five take-overs in a row by other nodes have cut off is no suspect: it runs at once with the next
// owner, wherever one more take-over comes, and is not dead.
func TestTakeOversMakeNoSuspect(t *testing.T) {
	const losses = 5
	harness.Exhaust(t, func(s *harness.Sim) {
		class := object.Define("bell", func(_ context.Context, st *object.State) (*slowBell, error) { return &slowBell{s, st}, nil })
		set := object.Handle(class, "set", func(b *slowBell, ctx context.Context, _ int) (int, error) {
			return 0, b.st.SetAlarm(ctx, b.st.Now())
		})
		rung := object.Handle(class, "rung", func(b *slowBell, ctx context.Context, _ int) (bool, error) {
			_, ok, err := b.st.Storage().Get(ctx, "rung")
			return ok, err
		})
		s.Host(class)
		s.OK(s.Retry(func() error {
			_, err := set.Call(s.Context(), s, "a", 0, object.Idempotent("set", 0))
			return err
		}))
		for range losses {
			s.Advance(time.Second)
			s.Crash(harness.Kill)
			s.Restart()
		}
		s.Advance(2500 * time.Millisecond) // a suspect would be held back for three seconds
		plain := s.Crashes() == losses
		s.Finally("it has rung", func() error {
			ok, err := rung.Call(s.Context(), s, "a", 0)
			if err == nil && plain {
				s.Always("A8: it rings at once", ok)
			}
			return err
		})
	}, harness.TakeoverStore(), harness.Seed(1), crashes.Budget(200))
}

// Proves M2, M3, M4 and N5 over a log. Letters are lost, doubled and out of order in no run, although the log is slow for longer than
// a host goes on without it, and another node takes over anywhere.
func TestMessagesOverASlowLog(t *testing.T) {
	scenario := func(s *harness.Sim) {
		o := newOffice(s, true)
		s.Host(o.desks)
		o.post("0", "c", "b", "holds")
		o.post("1", "a", "b", "", "delayed", "")
		s.Advance(3 * time.Second)
		o.post("2", "a", "b", plain(2)...)
		o.post("3", "c", "b", "syncs")
		s.Advance(3 * time.Minute)
		o.arrived("a", "b", 4, 1)
		o.arrived("c", "b", 2, 1)
	}
	harness.Exhaust(t, scenario, harness.TakeoverStore(), harness.Seed(1), crashes.Budget(400), harness.Depth(2),
		harness.NoLostAck, harness.NoTornBatch, harness.NoLostMessage, harness.Invariant("letters", accounted), harness.Ordered(letters),
		harness.AllowFaults(harness.Faults{Slow: 10 * time.Second, LateMessage: 1, DupMessage: 1}))
}

// A suspect that a suspension keeps from its turn stays on trial: it begins when the log answers, and the next suspect only when it
// has ended.
//
// Proves A8 and N5 over a log.
func TestSuspectOnTrialOverASuspension(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		life, end := context.WithCancel(t.Context())
		var running, most atomic.Int32
		shared, mem := memlog.New(), memstore.New()
		var log *quietLog
		next := func() {
			old, die := m.host, end
			mem = mem.Crash(0)
			log = &quietLog{silent.Log{Log: shared}}
			e, err := shardlog.Open(shardlog.Options{Log: log, Owner: "this"}, mem)
			if err != nil {
				t.Fatal(err)
			}
			m.options.Storage.Engine = e
			life, end = context.WithCancel(t.Context())
			running.Store(0)
			most.Store(0)
			m.open()
			die() // after the claim, because the old process would store the end of a handler
			if old != nil {
				_ = old.Shutdown(ended()) // its error means nothing, because the process is killed
			}
		}
		m.on(func(context.Context, *thing, string) error {
			mine := life
			n := running.Add(1)
			most.Store(max(most.Load(), n))
			select {
			case <-time.After(3 * time.Second):
				running.Add(-1)
				return nil
			case <-mine.Done():
				return errDied
			}
		})
		next()
		m.must("a", m.delays(time.Second, "b", "1"))
		m.must("a", m.delays(time.Second, "c", "1"))
		for opening := range 3 {
			pass(2 * time.Second)
			if running.Load() != 2 {
				t.Fatalf("%d run in opening %d, want 2", running.Load(), opening)
			}
			next()
		}
		var w longWork
		m.must("w", w.start)
		gate := make(chan struct{})
		var busy []<-chan ending
		for _, name := range []string{"b", "c"} {
			busy = append(busy, aside(func() error { _, err := m.call(name, until(gate)); return err }))
		}
		pass(3500 * time.Millisecond) // the first trial has begun
		answer := log.Stop()
		pass(2500 * time.Millisecond)
		close(gate)
		pass(time.Second)
		if n := most.Load(); n != 0 {
			t.Errorf("%d run while the log is silent", n)
		}
		answer()
		for _, b := range busy {
			if e := <-b; e.err != nil {
				t.Error(e.err)
			}
		}
		pass(time.Second)
		if n := running.Load(); n != 1 {
			t.Errorf("%d suspects run when the log answers, want the one on trial", n)
		}
		pass(time.Minute)
		if n := most.Load(); n != 1 {
			t.Errorf("%d suspects have run at a time", n)
		}
		m.left(0)
		m.stopWork("w")
		m.end()
	})
}

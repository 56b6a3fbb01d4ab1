package shardlogtest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// durable: all that was acknowledged survives a power loss right after it, and the owner goes on.
func durable(t TB, s *suite) {
	w, old := s.claim(t, s.next(), "a"), s.claim(t, s.next(), "a")
	var want []string
	for round := range 3 {
		for i := range 20 {
			p := fmt.Sprint(round, " ", i)
			w.must(t, p)
			want = append(want, p)
		}
		b := s.claim(t, old.Shard, "b")
		last := *w
		r := last.Record("last")
		w.must(t, "last")
		want = append(want, "last")
		s.restart(w, old, b, &last)
		s.headIs(t, w.Shard, w.State)
		s.headIs(t, b.Shard, b.State)
		s.holds(t, w.Shard, want...)
		if err := last.Send(r); err != nil {
			t.Errorf("the repeat of the last record after the power loss: %v", err)
		}
		old.fenced(t, "the old owner after the power loss", old.Record("x"))
		old = b
	}
	s.holds(t, old.Shard)
}

// durableStates: a claim, a truncation, a base and a quarantine survive a power loss right after them.
func durableStates(t TB, s *suite) {
	w := s.claim(t, s.next(), "a")
	w.must(t, "1", "2", "3")
	for _, does := range []struct {
		name string
		to   func(shard int) error
	}{
		{"claim", func(shard int) error { s.claim(t, shard, "b"); return nil }},
		{"truncation", func(shard int) error { s.remove(t, shard, 2); return nil }},
		{"base", func(shard int) error { return s.c.Base(shard, 7, 42) }},
		{"quarantine", func(shard int) error { return s.c.Lose(shard, "record 3") }},
	} {
		w := s.claim(t, s.next(), "a")
		w.must(t, "1", "2", "3")
		if err := does.to(w.Shard); err != nil {
			t.Fatalf("%s of shard %d: %v", does.name, w.Shard, err)
		}
		h := Head(t, s.c.Log, w.Shard)
		s.restart()
		if got := Head(t, s.c.Log, w.Shard); got != h {
			t.Errorf("the power loss after a %s changed the head from %+v to %+v", does.name, h, got)
		}
		Records(t, s.c.Log, w.Shard)
	}
	s.restart(w)
	s.holds(t, w.Shard, "1", "2", "3")
}

// durableBeside: of appends at the moment of a power loss, those that were acknowledged are there, and all that a head told of.
func durableBeside(t TB, s *suite) {
	owners := make([]*Writer, 4)
	seen := make([]shardlog.State, len(owners)) // the newest head of each owner's log
	var over atomic.Bool
	var all, begun sync.WaitGroup
	begun.Add(len(owners))
	for i := range owners {
		w := s.claim(t, s.next(), "a")
		owners[i] = w
		all.Go(func() { appendUntil(&over, w, sync.OnceFunc(begun.Done)) })
		all.Go(func() { seen[i] = lookUntil(&over, w.Log, w.Shard) })
	}
	begun.Wait()
	s.restart()
	over.Store(true)
	all.Wait()
	for i, w := range owners {
		records := Records(t, s.c.Log, w.Shard)
		for _, h := range []shardlog.State{w.State, seen[i]} {
			if n := shardlog.Position(len(records)); n < h.Last || h.Last > 0 && records[h.Last-1].Chain != h.Chain {
				t.Errorf("after the power loss shard %d ends at %d, its owner or a head was told of record %d with chain %x", w.Shard, n, h.Last, h.Chain)
			}
		}
	}
}

// appendUntil appends until it is over or a call fails, 5,000 records at most. It calls begun after 20 records, or at the end.
func appendUntil(over *atomic.Bool, w *Writer, begun func()) {
	defer begun()
	for n := 0; n < 5000 && !over.Load(); n++ {
		if n == 20 {
			begun()
		}
		r := w.Record(fmt.Sprint(n))
		if w.Log.Append(context.Background(), w.Shard, w.State.Chain, r) != nil {
			return
		}
		w.State.Last, w.State.Chain = r.At, r.Chain
	}
}

// lookUntil returns the newest head that it sees before it is over or a call fails.
func lookUntil(over *atomic.Bool, log shardlog.Log, shard int) (newest shardlog.State) {
	for !over.Load() {
		h, err := log.Head(context.Background(), shard)
		if err != nil {
			break
		}
		newest = h
		runtime.Gosched()
	}
	return newest
}

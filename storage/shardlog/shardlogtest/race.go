package shardlogtest

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// twoTerms: of two owners that append at the same place and moment through one Log, the old one is never told that its record is
// stored, and the new one's record is.
func twoTerms(t TB, s *suite) {
	old := s.claim(t, s.next(), "a")
	var want []string
	for i := range cmp.Or(s.c.Overlaps, 1000) {
		owner := s.claim(t, old.Shard, "b")
		p := fmt.Sprint("new ", i)
		r := old.Record(fmt.Sprint("old ", i))
		if i%2 == 1 {
			r = old.Record(p) // only the term tells the two records apart
		}
		told := make(chan error)
		go func() { told <- old.Send(r) }()
		err := owner.Append(p)
		if oldErr := <-told; err != nil || !errors.Is(oldErr, shardlog.ErrFenced) {
			t.Fatalf("time %d: the new owner was told %v, want nil; the old one %v, want ErrFenced", i, err, oldErr)
		}
		want, old = append(want, p), owner
	}
	s.headIs(t, old.Shard, old.State)
	for i, r := range s.holds(t, old.Shard, want...) {
		if r.Term != uint64(i+2) {
			t.Fatalf("record %d has term %d, want %d", r.At, r.Term, i+2)
		}
	}
}

// claims: of several claims of one term, one wins.
func claims(t TB, s *suite) {
	shard := s.next()
	for range 10 {
		seen := Head(t, s.c.Log, shard)
		won := make(chan string, 8)
		var all sync.WaitGroup
		for range cap(won) {
			owner := s.owner("a")
			all.Go(func() {
				switch h, err := claim(s.c.Log, shard, owner, seen.Term); {
				case err == nil && (h.Term != seen.Term+1 || h.Owner != owner):
					t.Errorf("the claim of %q after term %d returned %+v", owner, seen.Term, h)
				case err == nil:
					won <- owner
				case !errors.Is(err, shardlog.ErrFenced):
					t.Errorf("a claim beside others: %v", err)
				}
			})
		}
		all.Wait()
		h := Head(t, s.c.Log, shard)
		if len(won) != 1 {
			t.Fatalf("%d of %d claims after term %d won", len(won), cap(won), seen.Term)
		}
		if owner := <-won; h.Term != seen.Term+1 || h.Owner != owner {
			t.Fatalf("the claim of %q after term %d won, the head is %+v", owner, seen.Term, h)
		}
	}
}

// writers: of owners that replace one another while they append, each acknowledged record is there, and no place is
// acknowledged to two.
func writers(t TB, s *suite) {
	shard := s.next()
	var mu sync.Mutex
	acked := make(map[shardlog.Position]shardlog.Record)
	note := func(r shardlog.Record) {
		mu.Lock()
		defer mu.Unlock()
		if other, ok := acked[r.At]; ok {
			t.Errorf("record %d was acknowledged to the owners of terms %d and %d", r.At, other.Term, r.Term)
		}
		acked[r.At] = r
	}
	var replaced atomic.Int32
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			// The owners of a fast log seldom meet, so it takes many.
			for j := 0; j < 20 || j < 1000 && replaced.Load() < 40; j++ {
				if !appendAWhile(t, s.c.Log, shard, fmt.Sprint(i, "/", j), note) {
					replaced.Add(1)
				}
			}
		})
	}
	all.Wait()
	records := Records(t, s.c.Log, shard)
	for at, want := range acked {
		if at > shardlog.Position(len(records)) || records[at-1].Term != want.Term || records[at-1].Chain != want.Chain {
			t.Errorf("record %d of term %d was acknowledged and is not there", at, want.Term)
		}
	}
}

// appendAWhile claims a shard and appends three records. It returns false if the owner was replaced before the last.
func appendAWhile(t TB, log shardlog.Log, shard int, owner string, acked func(shardlog.Record)) bool {
	seen, err := head(log, shard)
	if err != nil {
		t.Errorf("head beside others: %v", err)
		return true
	}
	h, err := claim(log, shard, owner, seen.Term)
	w := &Writer{Log: log, Shard: shard, State: h}
	for n := 0; err == nil && n < 3; n++ {
		runtime.Gosched()
		r := w.Record(fmt.Sprint(owner, " ", n))
		if err = w.Send(r); err == nil {
			acked(r)
			w.State.Last, w.State.Chain = r.At, r.Chain
		}
	}
	if err != nil && !errors.Is(err, shardlog.ErrFenced) {
		t.Errorf("an owner beside others: %v", err)
	}
	return err == nil
}

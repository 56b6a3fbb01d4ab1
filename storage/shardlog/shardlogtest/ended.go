package shardlogtest

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// endedContext: a call with a context that has ended, or ends beside it, leaves its outcome unknown, and the log works on.
func endedContext(t TB, s *suite) {
	ctx, end := context.WithCancel(context.Background())
	end()
	w := s.claim(t, s.next(), "a")
	w.must(t, "1")
	seen, r := w.State, w.Record("2")
	log, shard := s.c.Log, w.Shard
	leavesOpen := func(call string, err error) {
		if !unknown(err) {
			t.Errorf("%s with a context that has ended returned %v, want an error that leaves the outcome unknown", call, err)
		}
	}
	_, err := log.Head(ctx, shard)
	leavesOpen("Head", err)
	leavesOpen("Append", log.Append(ctx, shard, w.State.Chain, r))
	leavesOpen("Read", log.Read(ctx, shard, 1, func(shardlog.Record) error { return nil }))
	leavesOpen("Truncate", log.Truncate(ctx, shard, w.State.Term, 0))
	if err := w.Send(r); err != nil {
		t.Errorf("the append again, with a context that lasts: %v", err)
	}
	s.holds(t, shard, "1", "2")

	owner := s.owner("b")
	_, err = log.Claim(ctx, shard, owner, seen.Term)
	leavesOpen("Claim", err)
	if h := Head(t, log, shard); h.Term != seen.Term && (h.Term != seen.Term+1 || h.Owner != owner) {
		t.Errorf("after a claim of unknown outcome the head is %+v", h)
	}
	s.endsBeside(t)
}

// endsBeside ends the context of appends while they are under way.
func (s *suite) endsBeside(t TB) {
	w := s.claim(t, s.next(), "a")
	var want []string
	for i := range 20 {
		p := fmt.Sprint(i)
		r := w.Record(p)
		ctx, end := context.WithCancel(context.Background())
		go end()
		if err := w.Log.Append(ctx, w.Shard, w.State.Chain, r); err != nil && !unknown(err) {
			t.Errorf("an append whose context ended beside it returned %v", err)
		}
		w.must(t, p)
		want = append(want, p)
	}
	s.holds(t, w.Shard, want...)
}

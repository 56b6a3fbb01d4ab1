package shardlogtest

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// fence: once a claim has returned, the owner before appends nothing at any place, and no claim of a term succeeds that is not the newest.
func fence(t TB, s *suite) {
	shard := s.next()
	a := s.claim(t, shard, "a")
	last := a.Record("a1")
	first := *a
	a.must(t, "a1")
	b := s.claim(t, shard, "b")
	if b.State.Last != a.State.Last || b.State.Chain != a.State.Chain {
		t.Errorf("the new owner sees the end at %d, it is at %d", b.State.Last, a.State.Last)
	}
	first.fenced(t, "the old owner repeats its last record", last)
	first.fenced(t, "the old owner at the place of its last record", first.Record("x"))
	a.fenced(t, "the old owner at the next place", a.Record("x"))
	b.must(t, "b1")
	a.fenced(t, "the old owner at the place of the new owner's record", a.Record("x"))
	a.fenced(t, "the old owner with the record of the new owner", a.Record("b1"))
	late := *a
	late.State.Last, late.State.Chain = b.State.Last, b.State.Chain
	late.fenced(t, "the old owner behind the new owner's record", late.Record("x"))

	for _, seen := range []uint64{0, a.State.Term, b.State.Term + 1, b.State.Term + 100} {
		if seen != b.State.Term {
			s.refused(t, shard, seen)
		}
	}
	s.headIs(t, shard, b.State)
	b.must(t, "b2")
	s.holds(t, shard, "a1", "b1", "b2")
}

// refused claims a term that is not the newest.
func (s *suite) refused(t TB, shard int, seen uint64) {
	t.Helper()
	var err error
	for range tries {
		if _, err = s.c.Log.Claim(context.Background(), shard, s.owner("late"), seen); !unknown(err) {
			break
		}
	}
	if !errors.Is(err, shardlog.ErrFenced) {
		t.Errorf("a claim after term %d, which is not the newest: %v, want ErrFenced", seen, err)
	}
}

// pause: an owner that stands still between the making of a record and its call appends nothing if there was a claim meanwhile.
func pause(t TB, s *suite) {
	for _, does := range []struct {
		about string
		owner func(t TB, b *Writer)
	}{
		{"a claim", func(TB, *Writer) {}},
		{"a claim and a record", func(t TB, b *Writer) { b.must(t, "b1") }},
		{"a claim and the same record", func(t TB, b *Writer) { b.must(t, "a2") }}, // only the term differs
		{"a claim and two records", func(t TB, b *Writer) { b.must(t, "b1", "b2") }},
	} {
		a := s.claim(t, s.next(), "a")
		a.must(t, "a1")
		paused := a.Record("a2")
		b := s.claim(t, a.Shard, "b")
		does.owner(t, b)
		a.fenced(t, "the paused append after "+does.about, paused)
		s.headIs(t, a.Shard, b.State)
		b.must(t, "end")
		Records(t, s.c.Log, a.Shard)
	}

	// The new owner does not take the record of the old one for its own.
	a := s.claim(t, s.next(), "a")
	stored := a.Record("a1")
	before := *a
	a.must(t, "a1")
	before.State.Term = s.claim(t, a.Shard, "b").State.Term
	stored.Term = before.State.Term
	before.fenced(t, "the new owner at the place of the old owner's record, with the same payload", stored)
}

// sameNode: two claims of one node id are two owners, because the rest of their names differs.
func sameNode(t TB, s *suite) {
	a := s.claim(t, s.next(), "node")
	a.must(t, "1")
	b := s.claim(t, a.Shard, "node")
	s.headIs(t, a.Shard, b.State)
	a.fenced(t, "the first owner of two with the same node id", a.Record("x"))
	b.must(t, "2")
	s.holds(t, a.Shard, "1", "2")
}

// quarantine: a log that has lost records takes no claim and no append. Its records can be read.
func quarantine(t TB, s *suite) {
	const where = "record 3 of chain 1f, seen by a node's receipt"
	w := s.claim(t, s.next(), "a")
	w.must(t, "1")
	before := *w
	last := w.Record("2")
	w.must(t, "2")
	if err := s.c.Lose(w.Shard, where); err != nil {
		t.Fatalf("put shard %d into quarantine: %v", w.Shard, err)
	}
	h := Head(t, s.c.Log, w.Shard)
	if h.Lost != where || h.Term <= w.State.Term || h.Owner == w.State.Owner || h.First != 1 || h.Last != w.State.Last || h.Chain != w.State.Chain {
		t.Errorf("the head in quarantine is %+v, before it was %+v", h, w.State)
	}
	w.fenced(t, "an append in quarantine", w.Record("x"))
	before.fenced(t, "the repeat of the last record in quarantine", last)
	s.refused(t, w.Shard, w.State.Term)
	s.refused(t, w.Shard, h.Term)
	s.headIs(t, w.Shard, h)
	s.holds(t, w.Shard, "1", "2")
}

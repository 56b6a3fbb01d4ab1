package shardlogtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Truncate removes the records of a shard up to a position in the name of its owner, and fails the test if that does not succeed.
func Truncate(t TB, log shardlog.Log, shard int, upTo shardlog.Position) {
	t.Helper()
	h, err := head(log, shard)
	if err == nil {
		err = truncateAs(log, shard, h.Term, upTo)
	}
	if err != nil {
		t.Errorf("truncate shard %d up to record %d: %v", shard, upTo, err)
	}
}

// truncateAs truncates a shard in a term.
func truncateAs(log shardlog.Log, shard int, term uint64, upTo shardlog.Position) error {
	return again(func() error { return log.Truncate(context.Background(), shard, term, upTo) })
}

// remove is Truncate of the suite's log.
func (s *suite) remove(t TB, shard int, upTo shardlog.Position) {
	t.Helper()
	Truncate(t, s.c.Log, shard, upTo)
}

// beginsLater reads from a position that the log does not have any more.
func (s *suite) beginsLater(t TB, shard int, from shardlog.Position) {
	t.Helper()
	var err error
	given := 0
	for range tries {
		if err = s.c.Log.Read(context.Background(), shard, from, func(shardlog.Record) error { given++; return nil }); !unknown(err) {
			break
		}
	}
	if given > 0 || !errors.Is(err, shardlog.ErrTruncated) {
		t.Errorf("a read from record %d, before the first, gave %d records and returned %v, want ErrTruncated", from, given, err)
	}
}

// truncate: truncation removes the oldest records, however often it is repeated, and changes nothing at the end.
func truncate(t TB, s *suite) {
	w := s.claim(t, s.next(), "a")
	for i := range 10 {
		w.must(t, fmt.Sprint(i+1))
	}
	for _, upTo := range []shardlog.Position{0, 1, 6, 6, 3} {
		s.remove(t, w.Shard, upTo)
		w.State.First = max(w.State.First, upTo+1)
		s.headIs(t, w.Shard, w.State)
	}
	s.beginsLater(t, w.Shard, 1)
	s.beginsLater(t, w.Shard, 6)
	w.must(t, "11")
	s.holds(t, w.Shard, "7", "8", "9", "10", "11")

	s.remove(t, w.Shard, 11)
	w.State.First = 12
	s.headIs(t, w.Shard, w.State)
	s.beginsLater(t, w.Shard, 11)
	s.holds(t, w.Shard)
	old := *w
	w = s.claim(t, w.Shard, "b")
	if w.State.First != 12 || w.State.Last != 11 || w.State.Chain != old.State.Chain {
		t.Errorf("a claim of a log without records returned %+v, the owner before had %+v", w.State, old.State)
	}
	old.fenced(t, "the old owner of a log without records", old.Record("x"))
	w.must(t, "12")
	s.holds(t, w.Shard, "12")

	_ = s.c.Log.Truncate(context.Background(), w.Shard, w.State.Term, w.State.Last+5) // it may refuse
	if h := Head(t, s.c.Log, w.Shard); h.Last != w.State.Last || h.Chain != w.State.Chain || h.First > h.Last+1 {
		t.Errorf("the head after a truncation beyond the end is %+v, before it was %+v", h, w.State)
	}
	w.must(t, "13")
	if records := Records(t, s.c.Log, w.Shard); len(records) == 0 || string(records[len(records)-1].Payload) != "13" {
		t.Errorf("after a truncation beyond the end and an append the log has %d records, and record 13 is not the last", len(records))
	}
}

// truncateRefused: only the owner truncates, so one that was replaced removes nothing that the next one may need. In quarantine all stays,
// because a rescue compares with it.
func truncateRefused(t TB, s *suite) {
	a := s.claim(t, s.next(), "a")
	a.must(t, "1", "2")
	b := s.claim(t, a.Shard, "b")
	b.must(t, "3")
	refused := func(about string, w *Writer, terms ...uint64) {
		t.Helper()
		before := Head(t, s.c.Log, w.Shard)
		for _, term := range terms {
			for _, upTo := range []shardlog.Position{0, 1, 9} {
				err := truncateAs(s.c.Log, w.Shard, term, upTo)
				refusedBy(t, fmt.Sprintf("a truncation up to record %d of term %d %s", upTo, term, about), err, shardlog.ErrFenced)
			}
		}
		s.headIs(t, w.Shard, before)
	}
	refused("in term 2", b, 0, a.State.Term, b.State.Term+1)
	s.holds(t, b.Shard, "1", "2", "3")
	s.remove(t, b.Shard, 2)
	b.State.First = 3
	s.headIs(t, b.Shard, b.State)
	refused("of what is removed", b, a.State.Term) // a repeat of it is refused too

	unclaimed := &Writer{Log: s.c.Log, Shard: s.next()}
	refused("before a claim", unclaimed, 0, 1)
	if err := s.c.Lose(b.Shard, "record 4"); err != nil {
		t.Fatalf("lose: %v", err)
	}
	refused("in quarantine", b, b.State.Term, Head(t, s.c.Log, b.Shard).Term)
	s.holds(t, b.Shard, "3")
}

// base: an empty view cannot take up a log that begins behind a base, and the next record follows from the base.
func base(t TB, s *suite) {
	const chain = 0xfedcba9876543210 // more than a signed number holds
	shard := s.next()
	if err := s.c.Base(shard, 1, chain); err != nil {
		t.Fatalf("put a base into shard %d: %v", shard, err)
	}
	h := Head(t, s.c.Log, shard)
	if h.First != 2 || h.Last != 1 || h.Chain != chain {
		t.Errorf("the head of a log with a base up to record 1 is %+v", h)
	}
	s.beginsLater(t, shard, 1)
	s.holds(t, shard)

	w := s.claim(t, shard, "a")
	empty := *w
	empty.State.Last, empty.State.Chain = 0, 0
	empty.fenced(t, "the first record of a log whose base has it", empty.Record("1"))
	empty.State.Last = 1
	empty.fenced(t, "the record behind the base with the chain of an empty log", empty.Record("2"))
	r := w.Record("2")
	w.must(t, "2", "3")
	s.beginsLater(t, shard, 1)
	if records := s.holds(t, shard, "2", "3"); len(records) > 0 && records[0].Chain != r.Chain {
		t.Errorf("the record behind the base has chain %x, want %x", records[0].Chain, r.Chain)
	}
}

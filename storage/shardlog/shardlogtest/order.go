package shardlogtest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// order: the records of two owners, one after the other, are there in their order, and the head follows each.
func order(t TB, s *suite) {
	shard := s.next()
	var want []string
	var terms []uint64
	for _, node := range []string{"a", "b"} {
		before := Head(t, s.c.Log, shard)
		w := s.claim(t, shard, node)
		if w.State.First != 1 || w.State.Last != before.Last || w.State.Chain != before.Chain {
			t.Errorf("the claim returned %+v, the head before it was %+v", w.State, before)
		}
		s.headIs(t, shard, w.State)
		for i := range 20 {
			p := fmt.Sprint(node, i)
			w.must(t, p)
			s.headIs(t, shard, w.State)
			want, terms = append(want, p), append(terms, w.State.Term)
		}
	}
	for i, r := range s.holds(t, shard, want...) {
		if r.Term != terms[i] {
			t.Errorf("record %d has term %d, its owner had %d", r.At, r.Term, terms[i])
		}
	}
}

// unclaimed: a shard that was never claimed has an empty log, and term 1 is the first.
func unclaimed(t TB, s *suite) {
	shard := s.next()
	empty := shardlog.State{First: 1}
	s.headIs(t, shard, empty)
	s.headIs(t, shard, empty) // the first look has changed nothing
	s.holds(t, shard)
	nobody := &Writer{Log: s.c.Log, Shard: shard}
	nobody.fenced(t, "an append to a shard without an owner", shardlog.Record{At: 1, Term: 1, Chain: shardlog.Next(0, []byte("x")), Payload: []byte("x")})
	if w := s.claim(t, shard, "a"); w.State.Term != 1 || w.State.Last != 0 || w.State.Chain != 0 || w.State.Lost != "" {
		t.Errorf("the first claim returned %+v", w.State)
	}
}

// shards: each shard has a log of its own.
func shards(t TB, s *suite) {
	var writers []*Writer
	for range 4 {
		writers = append(writers, s.claim(t, s.next(), "a"))
	}
	for i := range 5 {
		for _, w := range writers {
			w.must(t, fmt.Sprint(w.Shard, " ", i))
		}
	}
	b := s.claim(t, writers[0].Shard, "b") // fences the others nowhere
	b.must(t, "b")
	for i, w := range writers {
		want := []string{}
		for j := range 5 {
			want = append(want, fmt.Sprint(w.Shard, " ", j))
		}
		if i == 0 {
			want = append(want, "b")
		} else {
			w.must(t, "more")
			want = append(want, "more")
		}
		s.holds(t, w.Shard, want...)
	}
}

// payloads: a record holds any bytes, none too, and those that it had at the call.
func payloads(t TB, s *suite) {
	w := s.claim(t, s.next(), "a")
	random := make([]byte, 16<<20) // the largest turn
	draw := rand.New(rand.NewPCG(1, 2))
	for at := 0; at < len(random); at += 8 {
		binary.BigEndian.PutUint64(random[at:], draw.Uint64())
	}
	want := []string{"", "\x00", "\x00\xff\n'\\", string(random), ""}
	w.must(t, want...)

	r := w.Record("as it was")
	payload := slices.Clone(r.Payload)
	if err := w.Send(r); err != nil {
		t.Errorf("append: %v", err)
	}
	copy(r.Payload, "scribbled") // the log must not have kept it
	s.holds(t, w.Shard, append(want, string(payload))...)
}

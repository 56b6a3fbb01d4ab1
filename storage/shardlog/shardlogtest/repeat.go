package shardlogtest

import "github.com/holdfast-dev/holdfast/storage/shardlog"

// repeat: an owner may repeat its last record, which is stored once. Another record at its place is refused.
func repeat(t TB, s *suite) {
	w := s.claim(t, s.next(), "a")
	first := w.Record("1")
	for range 3 {
		if err := w.Send(first); err != nil {
			t.Errorf("the same append again: %v", err)
		}
	}
	w.fenced(t, "another record at the place of the last", w.Record("other"))
	s.holds(t, w.Shard, "1")

	second := *w
	second.State.Last, second.State.Chain = first.At, first.Chain
	second.must(t, "2")
	w.fenced(t, "the repeat of a record that is not the last any more", first)
	s.holds(t, w.Shard, "1", "2")
}

// holes: an append that does not follow from the end of the log is refused.
func holes(t TB, s *suite) {
	w := s.claim(t, s.next(), "a")
	w.must(t, "1", "2")
	for _, at := range []shardlog.Position{0, 1, w.State.Last, w.State.Last + 2, w.State.Last + 100} {
		r := w.Record("x")
		r.At = at
		w.fenced(t, "an append at a place that is not the next", r)
	}
	for _, chain := range []uint64{0, w.State.Chain + 1, ^w.State.Chain} {
		other := *w
		other.State.Chain = chain
		other.fenced(t, "an append after another chain", other.Record("x"))
	}
	s.headIs(t, w.Shard, w.State)
	s.holds(t, w.Shard, "1", "2")
}

package shardlogtest

import (
	"context"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// cut returns a log that cuts off its next Append or Claim.
func (s *suite) cut(m Moment) shardlog.Log {
	if s.c.Cut != nil {
		s.c.Cut(m)
		return s.c.Log
	}
	return &dropping{s.c.Log, m}
}

// dropping is a Log that drops calls, or the answers to calls that were done.
type dropping struct {
	shardlog.Log
	at Moment
}

// Append implements shardlog.Log.
func (d *dropping) Append(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
	return d.drop(func() error { return d.Log.Append(ctx, shard, before, r) })
}

// Claim implements shardlog.Log.
func (d *dropping) Claim(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
	return shardlog.State{}, d.drop(func() error {
		_, err := claim(d.Log, shard, owner, seen)
		return err
	})
}

// drop does a call for its effect, if it is to have one. Only a refusal comes back.
func (d *dropping) drop(call func() error) error {
	for n := 0; d.at == After && n < tries; n++ {
		if err := call(); err == nil {
			break
		} else if !unknown(err) {
			return err
		}
	}
	return shardlog.ErrUnknown
}

// cutOff sends a record by a call that is cut off, and says whether it is in the log.
func (s *suite) cutOff(t TB, m Moment, w *Writer, r shardlog.Record) (landed bool) {
	t.Helper()
	err := s.cut(m).Append(context.Background(), w.Shard, w.State.Chain, r)
	if err != nil && !unknown(err) {
		t.Errorf("an append that was cut off returned %v, which says that nothing is stored", err)
	}
	landed = m == After || err == nil
	last := Head(t, s.c.Log, w.Shard).Last
	if err == nil && last != r.At {
		t.Errorf("an append that was cut off returned nil, and the log ends at %d, not at %d", last, r.At)
	}
	return landed
}

// cutAppend: the outcome of an append that is cut off is unknown. Its repeat stores it once; after a claim the repeat is fenced, and the
// record is there if the first call stored it.
func cutAppend(t TB, s *suite) {
	for _, m := range []Moment{Before, After} {
		w := s.claim(t, s.next(), "a")
		w.must(t, "1")
		r := w.Record("2")
		s.cutOff(t, m, w, r)
		if err := w.Send(r); err != nil {
			t.Errorf("the repeat of an append that was cut off: %v", err)
		}
		s.holds(t, w.Shard, "1", "2")

		a := s.claim(t, s.next(), "a")
		a.must(t, "1")
		r, want := a.Record("2"), []string{"1"}
		if s.cutOff(t, m, a, r) {
			want = append(want, "2")
		}
		b := s.claim(t, a.Shard, "b")
		a.fenced(t, "the repeat of an append that was cut off, after a claim", r)
		s.headIs(t, a.Shard, b.State)
		s.holds(t, a.Shard, want...)
		b.must(t, "b")
		a.fenced(t, "the repeat of an append that was cut off, after a record of the new owner", r)
		s.holds(t, a.Shard, append(want, "b")...)
	}
}

// cutClaim: the head tells the owner of a claim that was cut off whether it has the term.
func cutClaim(t TB, s *suite) {
	for _, m := range []Moment{Before, After} {
		shard := s.next()
		seen := s.claim(t, shard, "a").State
		owner := s.owner("node")
		h, err := s.cut(m).Claim(context.Background(), shard, owner, seen.Term)
		if err != nil && !unknown(err) {
			t.Errorf("a claim that was cut off returned %v", err)
		}
		want := seen
		if m == After || err == nil {
			want.Term, want.Owner = seen.Term+1, owner
		}
		s.headIs(t, shard, want)
		if want.Term == seen.Term { // another with the same node id is faster
			want = s.claim(t, shard, "node").State
			s.headIs(t, shard, want)
			s.refused(t, shard, seen.Term)
			continue
		}
		if err == nil && h != want {
			t.Errorf("the claim returned %+v, the head is %+v", h, want)
		}
		s.refused(t, shard, seen.Term) // its term is over, although by the same owner
		w := &Writer{Log: s.c.Log, Shard: shard, State: want}
		w.must(t, "1")
		s.holds(t, shard, "1")
	}
}

package storage

import (
	"slices"
	"testing"
)

// seqsOf returns the numbers of the events of an object.
func seqsOf(t *testing.T, s *Store, id ID) (seqs []uint64) {
	t.Helper()
	if err := s.Events(id, 0, func(seq uint64, _ []byte) bool { seqs = append(seqs, seq); return true }); err != nil {
		t.Fatal(err)
	}
	return seqs
}

// An event that expires before older ones of its object takes them along, the oldest first, in
// portions. So the events that are left are always the newest, also while portions are left. Up to
// the time of MixedUntil only, and no event of another object goes. Proves V7.
func TestEventsExpireInTheirOrder(t *testing.T) {
	const soon, late, n = 50, 100, 10
	id, other := ID{"c", "n"}, ID{"c", "na"}
	for _, c := range []struct {
		mixed int64
		want  []uint64 // that are left
	}{{soon - 1, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12}}, {soon, []uint64{12}}, {late, []uint64{12}}} {
		s := open(t, memOptions(newDisk(1<<30)))
		s.MixedUntil(c.mixed)
		commit(t, s, func(b *Batch) {
			for seq := uint64(1); seq <= n; seq++ {
				b.AddEvent(s.ShardOf(id), id, seq, late, nil)
			}
			b.AddEvent(s.ShardOf(id), id, n+1, soon, nil)
			b.AddEvent(s.ShardOf(id), id, n+2, late+1, nil)
			b.AddEvent(s.ShardOf(other), other, 1, late, nil)
		})
		const limit = 6
		for more := true; more; {
			done, next, ok, err := s.Expire(s.ShardOf(id), soon, limit, nil)
			if err != nil {
				t.Fatal(err)
			}
			if done > limit+1 {
				t.Errorf("V7: a portion has %d records, the limit is %d", done, limit)
			}
			left := seqsOf(t, s, id)
			for i, seq := range left {
				if c.mixed >= soon && seq != n+3-uint64(len(left)-i) {
					t.Fatalf("V7: a portion leaves the events %d", left)
				}
			}
			more = ok && next <= soon
		}
		if left := seqsOf(t, s, id); !slices.Equal(left, c.want) {
			t.Errorf("V7: mixed until %d: events %d are left, want %d", c.mixed, left, c.want)
		}
		if left := seqsOf(t, s, other); len(left) != 1 {
			t.Errorf("V7: another object has events %d", left)
		}
		for shard := range s.Shards() {
			if _, _, _, err := s.Expire(shard, late+1, 100, nil); err != nil {
				t.Fatal(err)
			}
		}
		if left := append(seqsOf(t, s, id), seqsOf(t, s, other)...); len(left) > 0 {
			t.Errorf("V7: events %d stay", left)
		}
		checkAndClose(t, s)
	}
}

package storage

import "testing"

// The entry of a removed bucket stays in the expiry index, without its marks, until its
// lapse has ended, if it names its object. An entry of an older store has no value, and
// goes at once.
//
// Case ST18. Proves O1.
func TestLapseStaysUntilItEnds(t *testing.T) {
	s := open(t, memOptions(newMem()))
	defer checkAndClose(t, s)
	o, old := newObject(t, s, "c", "n"), newObject(t, s, "c", "n")
	commit(t, s, func(b *Batch) {
		b.SetMark(o, 10, "k", 10, nil)
		b.IndexMarks(o, 10)
		b.indexExpiry(10, bucketKey(nil, old, 10), ID{})
	})
	expire := func(now, again, next int64, want int) []Lapse {
		t.Helper()
		l := Lapses{Again: again}
		_, at, ok, err := s.Expire(o.Shard, now, 10, &l)
		if err != nil || len(l.All) != want || ok != (next != 0) || at != next {
			t.Fatalf("at %d: %d lapses, the next entry at %d, %v; want %d, %d", now, len(l.All), at, err, want, next)
		}
		return l.All
	}
	expire(9, 19, 10, 0)
	first := expire(10, 20, 0, 1)
	if got := first[0].Object; got.ID != o.ID || got.Number != o.Number || got.Shard != o.Shard {
		t.Errorf("the lapse is of %+v, want %+v", got, o)
	}
	if has, err := s.HasRows(nil, o); has || err != nil {
		t.Errorf("the mark is left: %v, %v", has, err)
	}
	expire(19, 29, 20, 0)
	second := expire(20, 30, 0, 1)
	commit(t, s, func(b *Batch) { b.EndLapse(first[0]) }) // too late: it has moved on
	expire(29, 39, 30, 0)
	commit(t, s, func(b *Batch) { b.EndLapse(second[0]) })
	expire(30, 40, 0, 0)
}

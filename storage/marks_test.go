package storage

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Events belong to a name and not to a life; each name reads its own, in order,
// from a cursor on.
func TestEventsAreReadFromACursor(t *testing.T) {
	s := memStore(t)
	seqs := []uint64{1, 255, 256, 1 << 40, math.MaxUint64 - 1, math.MaxUint64}
	commit(t, s, func(b *Batch) {
		for _, id := range hostileIDs() {
			for _, seq := range seqs {
				b.AddEvent(s.ShardOf(id), id, seq, 1000, fmt.Append(nil, id.String(), seq))
			}
		}
	})
	for _, id := range hostileIDs() {
		for i, after := range append([]uint64{0}, seqs...) {
			var got []uint64
			err := s.Events(id, after, func(seq uint64, v []byte) bool {
				if string(v) != fmt.Sprint(id.String(), seq) {
					t.Errorf("event %d of %.20q holds %.20q", seq, id, v)
				}
				got = append(got, seq)
				return true
			})
			if err != nil || !slices.Equal(got, seqs[i:]) {
				t.Errorf("after %d: %v, %v; want %v", after, got, err, seqs[i:])
			}
		}
	}
}

func TestDeadLetters(t *testing.T) {
	s := memStore(t)
	want := map[string]string{}
	commit(t, s, func(b *Batch) {
		for i, id := range hostileIDs() {
			for seq := uint64(1); seq <= 2; seq++ {
				b.SetDead(s.ShardOf(id), id, seq, []byte{byte(i)})
				want[fmt.Sprint(id, seq)] = string([]byte{byte(i)})
			}
		}
	})
	id := ID{"a", "a\x00"}
	commit(t, s, func(b *Batch) { b.DropDead(s.ShardOf(id), id, 1) })
	delete(want, fmt.Sprint(id, 1))

	got := map[string]string{}
	if err := s.AllDeadLetters(func(id ID, seq uint64, v []byte) error {
		got[fmt.Sprint(id, seq)] = string(v)
		return nil
	}); err != nil || !maps.Equal(got, want) {
		t.Errorf("%d dead letters, want %d; %v", len(got), len(want), err)
	}
	var own []uint64
	if err := s.DeadLetters(id, func(seq uint64, _ []byte) error { own = append(own, seq); return nil }); err != nil || !slices.Equal(own, []uint64{2}) {
		t.Errorf("dead letters of one object: %v, %v", own, err)
	}
}

// Marks and events leave when they expire and not before, also when a mark was
// set again meanwhile, and nothing of the expiry index is left in the end.
func TestExpired(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t, memOptions(newMem()))
		defer checkAndClose(t, s)
		o := newObject(t, s, "c", "n")
		marks, events := map[string]int64{}, map[uint64]int64{}
		var b Batch
		for i := range rapid.IntRange(0, 15).Draw(rt, "writes") {
			expires := rapid.Int64Range(1, 20).Draw(rt, "expires")
			if rapid.Bool().Draw(rt, "mark") {
				key := rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "key")
				b.SetMark(o, key, expires, []byte(key))
				marks[key] = expires
			} else {
				b.AddEvent(o.Shard, o.ID, uint64(i+1), expires, nil)
				events[uint64(i+1)] = expires
			}
		}
		if _, err := s.Commit(&b); err != nil {
			rt.Fatal(err)
		}
		limit := rapid.IntRange(1, 5).Draw(rt, "limit")
		for now := int64(0); now <= 21; now += rapid.Int64Range(1, 5).Draw(rt, "step") {
			next, ok := expireUpTo(rt, s, o.Shard, now, limit)
			if ok && next <= now {
				rt.Fatalf("at %d the next is due at %d", now, next)
			}
			maps.DeleteFunc(marks, func(_ string, at int64) bool { return at <= now })
			maps.DeleteFunc(events, func(_ uint64, at int64) bool { return at <= now })
			checkExpiring(rt, s, o, marks, events)
			if left := len(marks) + len(events); !ok && left > 0 {
				rt.Fatalf("at %d nothing is due next, and %d rows are left", now, left)
			}
		}
		if _, ok := expireUpTo(rt, s, o.Shard, 1000, limit); ok {
			rt.Fatal("entries are left in the end")
		}
	})
}

func expireUpTo(t rapid.TB, s *Store, shard int, now int64, limit int) (next int64, ok bool) {
	for {
		done, next, ok, err := s.Expire(shard, now, limit)
		if err != nil || done > limit {
			t.Fatalf("%d of %d handled, %v", done, limit, err)
		}
		if done < limit {
			return next, ok
		}
	}
}

func checkExpiring(t rapid.TB, s *Store, o Object, marks map[string]int64, events map[uint64]int64) {
	for _, key := range []string{"", "a", "b"} {
		v, expires, ok, err := s.Mark(nil, o, key)
		want, wantOK := marks[key]
		if err != nil || ok != wantOK || expires != want || ok && string(v) != key {
			t.Fatalf("mark %q: %q until %d, %v, %v; want until %d, %v", key, v, expires, ok, err, want, wantOK)
		}
	}
	got := map[uint64]bool{}
	if err := s.Events(o.ID, 0, func(seq uint64, _ []byte) bool { got[seq] = true; return true }); err != nil {
		t.Fatal(err)
	}
	for seq := range events {
		if !got[seq] {
			t.Fatalf("event %d is gone early", seq)
		}
	}
	if len(got) != len(events) {
		t.Fatalf("%d events, want %d", len(got), len(events))
	}
}

// A batch sees its own marks, and the end of an object takes its marks with it.
func TestMarksOfABatchAndOfAnEnd(t *testing.T) {
	s := memStore(t)
	o := newObject(t, s, "c", "n")
	var b Batch
	b.SetMark(o, "k", 10, []byte("v"))
	if v, at, ok, err := s.Mark(&b, o, "k"); string(v) != "v" || at != 10 || !ok || err != nil {
		t.Errorf("own mark: %q, %d, %v, %v", v, at, ok, err)
	}
	b.DeleteMark(o, "k")
	if _, _, ok, err := s.Mark(&b, o, "k"); ok || err != nil {
		t.Errorf("a deleted mark is there: %v", err)
	}
	b.SetMark(o, "k", 10, []byte("v"))
	b.DropObject(o, nil)
	if _, err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
	again := newObject(t, s, "c", "n")
	if _, _, ok, err := s.Mark(nil, again, "k"); ok || err != nil {
		t.Errorf("the new life has the old mark: %v", err)
	}
}

// A mark that is set again while it expires is kept: what was acknowledged with
// it must not happen twice. Proves O16's storage side.
func TestExpireKeepsAMarkSetMeanwhile(t *testing.T) {
	s := memStore(t)
	o := newObject(t, s, "c", "n")
	var setter sync.WaitGroup
	for round := int64(1); round <= 200; round++ {
		commit(t, s, func(b *Batch) { b.SetMark(o, "k", round*10, nil) }) // expires at once
		setter.Go(func() {
			var b Batch
			b.SetMark(o, "k", round*10+5, []byte("again"))
			if _, err := s.Commit(&b); err != nil {
				t.Error(err)
			}
		})
		if _, _, _, err := s.Expire(o.Shard, round*10, 10); err != nil {
			t.Fatal(err)
		}
		setter.Wait()
		v, expires, ok, err := s.Mark(nil, o, "k")
		if string(v) != "again" || expires != round*10+5 || !ok || err != nil {
			t.Fatalf("round %d: %q until %d, %v, %v", round, v, expires, ok, err)
		}
	}
	if done, _, ok, err := s.Expire(o.Shard, 1<<40, 1000); done == 0 || ok || err != nil {
		t.Errorf("in the end %d are removed, more %v, %v", done, ok, err)
	}
	if has, err := s.HasRows(nil, o); has || err != nil {
		t.Errorf("rows are left: %v", err)
	}
}

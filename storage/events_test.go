package storage

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
)

// Events belong to a name, also beyond the end of its object. Each name reads its own
// events in order, from a cursor on.
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
		var newest []uint64
		err := s.NewestEvents(id, func(seq uint64, v []byte) bool {
			if string(v) != fmt.Sprint(id.String(), seq) {
				t.Errorf("event %d of %.20q holds %.20q", seq, id, v)
			}
			newest = append(newest, seq)
			return len(newest) < 3
		})
		if want := []uint64{math.MaxUint64, math.MaxUint64 - 1, 1 << 40}; err != nil || !slices.Equal(newest, want) {
			t.Errorf("the newest of %.20q are %v, %v; want %v", id, newest, err, want)
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
	commit(t, s, func(b *Batch) { b.DeleteDead(s.ShardOf(id), id, 1) })
	delete(want, fmt.Sprint(id, 1))

	got := map[string]string{}
	if next, err := s.ListDead(DeadOptions{}, func(id ID, seq uint64, v []byte) bool {
		got[fmt.Sprint(id, seq)] = string(v)
		return true
	}); err != nil || next != nil || !maps.Equal(got, want) {
		t.Errorf("%d dead letters, want %d; %v", len(got), len(want), err)
	}
	var own []uint64
	if err := s.DeadLetters(id, func(seq uint64, _ []byte) error { own = append(own, seq); return nil }); err != nil || !slices.Equal(own, []uint64{2}) {
		t.Errorf("dead letters of one object: %v, %v", own, err)
	}
}

package storage

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// expiring is a model of the rows of one object that expire.
type expiring struct {
	store  *Store
	object Object
	now    int64
	marks  map[string][2]int64 // when each expires and is removed
	events map[uint64]int64    // when each expires
}

// set sets a mark, or stores an event.
func (x *expiring) set(rt *rapid.T, seq uint64) {
	expires := x.now + rapid.Int64Range(0, 300).Draw(rt, "ttl")<<32
	var b Batch
	if rapid.Bool().Draw(rt, "mark") {
		key := rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "key")
		if old, ok := x.marks[key]; ok {
			b.DeleteMark(x.object, old[1], key)
		}
		x.marks[key] = [2]int64{expires, setMark(&b, x.object, x.now, key, expires, key)}
	} else {
		b.AddEvent(x.object.Shard, x.object.ID, seq, expires, nil)
		x.events[seq] = expires
	}
	if _, err := x.store.Commit(&b); err != nil {
		rt.Fatal(err)
	}
}

// expire removes the rows that have expired.
func (x *expiring) expire(rt *rapid.T) {
	limit := rapid.IntRange(1, 5).Draw(rt, "limit")
	for {
		done, next, ok, err := x.store.Expire(x.object.Shard, x.now, limit, nil)
		if err != nil {
			rt.Fatal(err)
		}
		if ok && next <= x.now && done < limit {
			rt.Fatalf("it stopped after %d of %d, and at %d the next is due at %d", done, limit, x.now, next)
		}
		if left := len(x.marks) + len(x.events); !ok && left > 0 && x.left() {
			rt.Fatalf("at %d nothing is due next, and rows are left", x.now)
		}
		if !ok || next > x.now {
			break
		}
	}
	maps.DeleteFunc(x.marks, func(_ string, at [2]int64) bool { return at[1] <= x.now })
	maps.DeleteFunc(x.events, func(_ uint64, at int64) bool { return at <= x.now })
}

// left reports whether some row must be there still.
func (x *expiring) left() bool {
	for _, at := range x.marks {
		if at[1] > x.now {
			return true
		}
	}
	for _, at := range x.events {
		if at > x.now {
			return true
		}
	}
	return false
}

func (x *expiring) check(rt *rapid.T) {
	for _, key := range []string{"", "a", "b"} {
		v, expires, ok, err := x.store.FindMark(x.object, key)
		want, wantOK := x.marks[key]
		if err != nil || ok != wantOK || expires != want[0] || ok && string(v) != key {
			rt.Fatalf("mark %q: %q until %d, %v, %v; want until %d, %v", key, v, expires, ok, err, want, wantOK)
		}
	}
	got := map[uint64]bool{}
	if err := x.store.Events(x.object.ID, 0, func(seq uint64, _ []byte) bool { got[seq] = true; return true }); err != nil {
		rt.Fatal(err)
	}
	for seq := range x.events {
		if !got[seq] {
			rt.Fatalf("event %d is gone early", seq)
		}
	}
	if len(got) != len(x.events) {
		rt.Fatalf("%d events, want %d", len(got), len(x.events))
	}
}

// Marks and events leave when their time is over and not before, also when a mark
// was set again meanwhile, and nothing of the expiry index is left in the end. Proves
// O16.
func TestExpire(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t, memOptions(newMem()))
		defer checkAndClose(t, s)
		x := &expiring{store: s, object: newObject(t, s, "c", "n"), marks: map[string][2]int64{}, events: map[uint64]int64{}}
		for i := range rapid.IntRange(0, 30).Draw(rt, "steps") {
			x.now += rapid.Int64Range(0, 100).Draw(rt, "step") << 32
			x.set(rt, uint64(i+1))
			if rapid.Bool().Draw(rt, "expire") {
				x.expire(rt)
			}
			x.check(rt)
		}
		x.now = 1 << 60
		x.expire(rt)
		x.check(rt)
		if done, _, ok, err := s.Expire(x.object.Shard, x.now, 1, nil); done != 0 || ok || err != nil {
			rt.Fatalf("entries are left in the end: %d, %v, %v", done, ok, err)
		}
		if has, err := s.HasRows(nil, x.object); has || err != nil {
			rt.Fatalf("rows are left: %v, %v", has, err)
		}
	})
}

// A bucket of few marks is removed mark by mark, and one of many as a range, to the
// same end: nothing of its neighbours goes with it, and none before its time. Proves
// O16.
func TestExpireBucketsOfAnySize(t *testing.T) {
	s := memStore(t)
	for _, marks := range []int{1, fewKeys - 1, fewKeys, fewKeys + 1, 3 * fewKeys} {
		o := newObject(t, s, "c", fmt.Sprint(marks))
		commit(t, s, func(b *Batch) {
			for i := range marks {
				b.SetMark(o, 20, fmt.Sprint(i), 10, nil)
			}
			for _, removal := range []int64{20, 21} {
				b.SetMark(o, removal, "last", 10, nil)
				b.IndexMarks(o, removal)
			}
			b.SetData(o, "k", nil)
		})
		done, next, ok, err := s.Expire(o.Shard, 20, 10, nil)
		if done < 2 || done > fewKeys+1 || next != 21 || !ok || err != nil {
			t.Errorf("%d marks: %d records, next at %d, %v, %v", marks, done, next, ok, err)
		}
		if left, err := s.Buckets(o, 0); err != nil || len(left) != 1 || left[0] != 21 {
			t.Errorf("%d marks: the buckets %v are left, %v", marks, left, err)
		}
		if _, ok, err := s.Data(nil, o, "k"); !ok || err != nil {
			t.Errorf("%d marks: a key is gone, %v", marks, err)
		}
		if _, _, _, err := s.Expire(o.Shard, 21, 10, nil); err != nil {
			t.Error(err)
		}
		if err := s.Check(); err != nil {
			t.Errorf("%d marks: %v", marks, err)
		}
	}
}

// A mark is set in another bucket while its old bucket is removed. The mark is kept,
// because a deed acknowledged with it must not happen twice. A mark may be set so late
// that its bucket is removed meanwhile, or was before: then it is gone, or will be.
// Proves O16's storage side.
func TestExpireBesideMarksThatAreSet(t *testing.T) {
	s := memStore(t)
	o := newObject(t, s, "c", "n")
	var setters sync.WaitGroup
	set := func(do func(b *Batch)) {
		setters.Go(func() {
			var b Batch
			do(&b)
			if _, err := s.Commit(&b); err != nil {
				t.Error(err)
			}
		})
	}
	for round := int64(2); round <= 200; round++ {
		at := round * 10
		commit(t, s, func(b *Batch) { b.SetMark(o, at, "k", at, nil); b.IndexMarks(o, at) })
		set(func(b *Batch) {
			b.DeleteMark(o, at, "k")
			b.SetMark(o, at+5, "k", at+5, []byte("again"))
			b.IndexMarks(o, at+5)
		})
		set(func(b *Batch) { b.SetMark(o, at, "late", at, nil) })        // its entry is there, or was
		set(func(b *Batch) { b.SetMark(o, at-10, "later", at-10, nil) }) // its entry was there
		if _, _, _, err := s.Expire(o.Shard, at, 10, nil); err != nil {
			t.Fatal(err)
		}
		setters.Wait()
		v, expires, ok, err := s.FindMark(o, "k")
		if string(v) != "again" || expires != at+5 || !ok || err != nil {
			t.Fatalf("round %d: %q until %d, %v, %v", round, v, expires, ok, err)
		}
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	for more := true; more; {
		var err error
		if _, _, more, err = s.Expire(o.Shard, 1<<40, 1000, nil); err != nil {
			t.Fatal(err)
		}
	}
	if has, err := s.HasRows(nil, o); has || err != nil {
		t.Errorf("rows are left: %v", err)
	}
}

// A batch with a late mark tells the time of its removal, so that the host looks at the
// index then.
func TestLateMarkTellsWhenItGoes(t *testing.T) {
	s := memStore(t)
	o := newObject(t, s, "c", "n")
	if _, _, _, err := s.Expire(o.Shard, 100, 10, nil); err != nil {
		t.Fatal(err)
	}
	for _, removal := range []int64{100, 50} {
		var b Batch
		b.SetMark(o, removal, "k", 7, nil)
		if _, err := s.Commit(&b); err != nil || b.Expires() != removal {
			t.Errorf("removed at %d, and the batch tells of %d, %v", removal, b.Expires(), err)
		}
	}
}

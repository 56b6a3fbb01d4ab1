package storage

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// An object exists from its header to its DropObject, which leaves none of its
// rows, and nothing of another object is touched.
func TestObjectsComeAndGo(t *testing.T) {
	s := newStoreOfHostileObjects(t)
	due := int64(50)
	for _, id := range hostileIDs() {
		o := find(t, s, id)
		commit(t, s, func(b *Batch) {
			b.SetData(o, "k", []byte(id.Name))
			b.SetMark(o, "m", 100, nil)
			b.SetOpen(o, []byte("x"))
			b.MoveAlarm(o, nil, &due, []byte("row"), []byte("index"))
		})
	}
	gone := find(t, s, ID{"a", "a\x00"})
	commit(t, s, func(b *Batch) { b.DropObject(gone, &due) })

	if o := find(t, s, gone.ID); o.Number != 0 {
		t.Errorf("the dropped object has number %d", o.Number)
	}
	if has, err := s.HasRows(nil, gone); has || err != nil {
		t.Errorf("the dropped object has rows: %v", err)
	}
	if _, ok, err := s.Open(gone); ok || err != nil {
		t.Errorf("the dropped object has an open mark: %v", err)
	}
	for _, id := range hostileIDs() {
		if id == gone.ID {
			continue
		}
		o := find(t, s, id)
		if v, ok, err := s.Data(nil, o, "k"); string(v) != id.Name || !ok || err != nil {
			t.Errorf("%.20q reads %.20q, %v, %v", id, v, ok, err)
		}
	}
}

func newStoreOfHostileObjects(t *testing.T) *Store {
	s := memStore(t)
	for _, id := range hostileIDs() {
		newObject(t, s, id.Class, id.Name)
	}
	return s
}

func find(t testing.TB, s *Store, id ID) Object {
	t.Helper()
	o, err := s.Find(id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Objects lists each object of a class once, and goes on after any of them.
// Proves O15's list.
func TestObjectsListsEach(t *testing.T) {
	s := newStoreOfHostileObjects(t)
	for _, class := range hostileClasses {
		var all []string
		visit := func(o Object) bool { all = append(all, o.ID.Name); return true }
		if err := s.Objects(class, "", visit); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(slices.Sorted(slices.Values(all)), slices.Sorted(slices.Values(hostileNames))) {
			t.Errorf("class %.10q has %.50q", class, all)
		}
		var paged []string
		after := ""
		for range all {
			if err := s.Objects(class, after, func(o Object) bool {
				paged = append(paged, o.ID.Name)
				return false
			}); err != nil {
				t.Fatal(err)
			}
			after = paged[len(paged)-1]
		}
		if !slices.Equal(paged, all) {
			t.Errorf("one by one class %.10q has %.50q, at once %.50q", class, paged, all)
		}
	}
	if err := s.Objects("nobody", "", func(o Object) bool { t.Errorf("found %q", o.ID); return true }); err != nil {
		t.Fatal(err)
	}
	classes, err := s.Classes()
	if err != nil || !slices.Equal(slices.Sorted(slices.Values(classes)), slices.Sorted(slices.Values(hostileClasses))) {
		t.Errorf("classes %.10q, %v", classes, err)
	}
}

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

func TestMetas(t *testing.T) {
	s := memStore(t)
	commit(t, s, func(b *Batch) {
		b.SetMeta("user/a", []byte("1"))
		b.SetMeta("user/b", []byte("2"))
		b.SetMeta("other", nil)
		b.DeleteMeta("user/b")
	})
	var got []string
	if err := s.Metas("user/", func(name string, v []byte) error { got = append(got, name+"="+string(v)); return nil }); err != nil || !slices.Equal(got, []string{"user/a=1"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// Alarms moves through any sequence of sets, moves and clears with exactly one
// index entry for each row, and the index is read in order of time from any place.
// Proves A1.
func TestAlarmRowAndIndexAreOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t, memOptions(newMem()))
		defer checkAndClose(t, s) // Check compares rows and index
		objects := make([]Object, 4)
		for i := range objects {
			objects[i] = Object{ID: ID{"c", fmt.Sprint(i)}, Shard: 1, Number: s.NewNumber()}
			for s.ShardOf(objects[i].ID) != 1 {
				objects[i].ID.Name += "."
			}
			commit(t, s, func(b *Batch) { b.SetHeader(objects[i]) })
		}
		armed := map[int]int64{}
		times := rapid.SampledFrom([]int64{1, 2, 255, 256, math.MaxInt64})
		for range rapid.IntRange(1, 12).Draw(rt, "moves") {
			i := rapid.IntRange(0, 3).Draw(rt, "object")
			var from, to *int64
			if at, ok := armed[i]; ok {
				from = &at
			}
			if rapid.Bool().Draw(rt, "set") {
				at := times.Draw(rt, "due")
				to, armed[i] = &at, at
			} else {
				delete(armed, i)
			}
			commit(t, s, func(b *Batch) { b.MoveAlarm(objects[i], from, to, []byte{byte(i)}, []byte{byte(i)}) })
		}
		var want []IndexEntry
		for i, o := range objects {
			row, ok, err := s.Alarm(o)
			at, isArmed := armed[i]
			if err != nil || ok != isArmed || ok && row[0] != byte(i) {
				rt.Fatalf("alarm row of %d: %v, %v, %v", i, row, ok, err)
			}
			if isArmed {
				want = append(want, IndexEntry{at, o.Number, []byte{byte(i)}})
			}
		}
		slices.SortFunc(want, func(x, y IndexEntry) int {
			if x.Due != y.Due {
				return cmpInt(x.Due, y.Due)
			}
			return cmpInt(int64(x.Number), int64(y.Number))
		})
		var got []IndexEntry
		at := IndexEntry{}
		for {
			page, err := s.ScanAlarms(1, at.Due, at.Number, 1)
			if err != nil {
				rt.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			at = page[0]
			got = append(got, at)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("index (-want +got):\n%s", diff)
		}
	})
}

func cmpInt(x, y int64) int {
	if x < y {
		return -1
	}
	return 1
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
		var b Batch
		done, next, ok, err := s.Expired(&b, shard, now, limit)
		if err == nil {
			_, err = s.Commit(&b)
		}
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

// Open marks are found by a scan whose cost is theirs.
func TestOpenMarks(t *testing.T) {
	s := memStore(t)
	want := map[string]int{}
	for i := range 10 {
		o := newObject(t, s, "c", fmt.Sprint(i))
		commit(t, s, func(b *Batch) {
			b.SetOpen(o, []byte(o.ID.Name))
			if i%2 == 0 {
				b.ClearOpen(o)
			}
		})
		if i%2 == 1 {
			want[o.ID.Name] = o.Shard
		}
	}
	got := map[string]int{}
	if err := s.OpenMarks(func(shard int, v []byte) error { got[string(v)] = shard; return nil }); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	stop := fmt.Errorf("stop")
	calls := 0
	if err := s.OpenMarks(func(int, []byte) error { calls++; return stop }); err != stop || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// Size grows with what an object stores.
func TestSize(t *testing.T) {
	s := memStore(t)
	small, large := newObject(t, s, "c", "small"), newObject(t, s, "c", "large")
	random := rapid.SliceOfN(rapid.Byte(), 2<<10, 2<<10)
	commit(t, s, func(b *Batch) {
		b.SetData(small, "k", nil)
		for i := range 100 {
			b.SetData(large, fmt.Sprint(i), random.Example(i))
		}
	})
	if err := s.engine.(*pebbleEngine).DB().Flush(); err != nil {
		t.Fatal(err)
	}
	x, err := s.Size(small)
	if err != nil {
		t.Fatal(err)
	}
	if y, err := s.Size(large); err != nil || y < 100<<10 || x > y/2 {
		t.Errorf("small %d bytes, large %d bytes, %v", x, y, err)
	}
}

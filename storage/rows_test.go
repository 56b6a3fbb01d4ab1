package storage

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// An object exists from its header to its DeleteObject. DeleteObject removes all its rows,
// and no row of another object.
func TestObjectsComeAndGo(t *testing.T) {
	s := newStoreOfHostileObjects(t)
	due := int64(50)
	for _, id := range hostileIDs() {
		o := find(t, s, id)
		commit(t, s, func(b *Batch) {
			b.SetData(o, "k", []byte(id.Name))
			setMark(b, o, 0, "m", 100, "")
			b.SetOpenMark(o, []byte("x"))
			b.MoveAlarm(o, nil, &due, []byte("row"), []byte("index"))
		})
	}
	gone := find(t, s, ID{"a", "a\x00"})
	commit(t, s, func(b *Batch) { b.DeleteObject(gone, &due) })

	if o := find(t, s, gone.ID); o.Number != 0 {
		t.Errorf("the dropped object has number %d", o.Number)
	}
	if has, err := s.HasRows(nil, gone); has || err != nil {
		t.Errorf("the dropped object has rows: %v", err)
	}
	if _, ok, err := s.OpenMark(gone); ok || err != nil {
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
	if err != nil || !slices.Equal(classes, slices.Sorted(slices.Values(hostileClasses))) {
		t.Errorf("classes %.10q, %v", classes, err)
	}
}

// Proves O15: each class is listed once, in the order of the names, whatever shards have it.
func TestClassesAreSorted(t *testing.T) {
	s := memStore(t)
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("class%02d", i))
		for k := range i%3 + 1 {
			newObject(t, s, want[i], fmt.Sprint(k))
		}
	}
	if got, err := s.Classes(); err != nil || !slices.Equal(got, want) {
		t.Errorf("O15: classes %q, %v", got, err)
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

// Open marks are found by a scan that reads no other rows.
func TestOpenMarks(t *testing.T) {
	s := memStore(t)
	want := map[string]int{}
	for i := range 10 {
		o := newObject(t, s, "c", fmt.Sprint(i))
		commit(t, s, func(b *Batch) {
			b.SetOpenMark(o, []byte(o.ID.Name))
			if i%2 == 0 {
				b.DeleteOpenMark(o)
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

// Size grows with the rows of an object.
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
	if err := s.engine.(*pebblestore.Store).DB().Flush(); err != nil {
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

// Few rows are removed one by one and many as a range, to the same end.
func TestDeleteObjectOfAnySize(t *testing.T) {
	s := memStore(t)
	for _, rows := range []int{0, 1, fewKeys - 1, fewKeys, fewKeys + 1, 3 * fewKeys} {
		gone, stays := newObject(t, s, "c", fmt.Sprint("gone ", rows)), newObject(t, s, "c", fmt.Sprint("stays ", rows))
		due := int64(7)
		commit(t, s, func(b *Batch) {
			for i := range rows {
				b.SetData(gone, fmt.Sprint(i), nil)
			}
			setMark(b, gone, 0, "m", 9, "")
			b.SetOpenMark(gone, nil)
			b.MoveAlarm(gone, nil, &due, nil, nil)
			b.SetData(stays, "k", nil)
		})
		var b Batch
		b.SetData(gone, "new", nil) // in the batch that removes it
		if err := s.DeleteObject(&b, gone, &due); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(&b); err != nil {
			t.Fatal(err)
		}
		if has, err := s.HasRows(nil, gone); has || err != nil || find(t, s, gone.ID).Number != 0 {
			t.Errorf("%d rows: some are left, %v", rows, err)
		}
		if err := s.Check(); err != nil {
			t.Errorf("%d rows: %v", rows, err)
		}
		if _, ok, err := s.Data(nil, stays, "k"); !ok || err != nil {
			t.Errorf("%d rows: the neighbour lost its key, %v", rows, err)
		}
	}
}

package storage

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// setMark stores a mark in the bucket of its removal, and the entry of the bucket. It
// returns the time of the removal.
func setMark(b *Batch, o Object, now int64, key string, expires int64, value string) (removal int64) {
	removal = Removal(o.Number, now, expires)
	b.SetMark(o, removal, key, expires, []byte(value))
	b.IndexMarks(o, removal)
	return removal
}

// A mark is removed after it expires, and not much later; marks of an object that
// are set with the same time to live share a few buckets, and those of many objects
// are not removed all at once.
func TestRemoval(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := Number(rapid.Uint64Min(1).Draw(rt, "number"))
		now := rapid.Int64Range(0, math.MaxInt64/2).Draw(rt, "now")
		ttl := rapid.Int64Range(-10, math.MaxInt64/2).Draw(rt, "ttl")
		width := max(1<<minBucketBits, ttl/4)
		if r := Removal(n, now, now+ttl); r < now+ttl || r-now-ttl >= width {
			rt.Fatalf("expires at %d, removed %d later", now+ttl, r-now-ttl)
		}
		removals := map[int64]bool{}
		for i := range int64(100) {
			at := now + ttl/100*i
			if at+ttl > at {
				removals[Removal(n, at, at+ttl)] = true
			}
		}
		if most := int(max(ttl, 0)/(width/2)) + 2; len(removals) > most {
			rt.Fatalf("%d buckets for marks of one time to live, want at most %d", len(removals), most)
		}
	})
	removals := map[int64]bool{}
	for n := range Number(1000) {
		removals[Removal(1<<32|n, 0, 1<<50)] = true
	}
	if len(removals) < 990 {
		t.Errorf("1,000 objects have %d times of removal", len(removals))
	}
	if r := Removal(1, 0, math.MaxInt64); r != math.MaxInt64 {
		t.Errorf("a mark that never expires is removed at %d", r)
	}
}

// A batch sees its own marks, and the end of an object takes its marks with it.
func TestMarksOfABatchAndOfAnEnd(t *testing.T) {
	s := memStore(t)
	o := newObject(t, s, "c", "n")
	var b Batch
	b.SetMark(o, 20, "k", 10, []byte("v"))
	if v, at, ok, err := s.Mark(&b, o, 20, "k"); string(v) != "v" || at != 10 || !ok || err != nil {
		t.Errorf("own mark: %q, %d, %v, %v", v, at, ok, err)
	}
	b.DeleteMark(o, 20, "k")
	if _, _, ok, err := s.Mark(&b, o, 20, "k"); ok || err != nil {
		t.Errorf("a deleted mark is there: %v", err)
	}
	b.SetMark(o, 20, "k", 10, []byte("v"))
	b.DeleteObject(o, nil)
	if _, err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
	again := newObject(t, s, "c", "n")
	if _, _, ok, err := s.FindMark(again, "k"); ok || err != nil {
		t.Errorf("the new life has the old mark: %v", err)
	}
}

// Marks of many buckets are listed in order, in pieces of any size, and so are the
// buckets.
func TestMarksAreListedByBucket(t *testing.T) {
	s := memStore(t)
	o, other := newObject(t, s, "c", "n"), newObject(t, s, "c", "m")
	var want []string
	removals := []int64{0, 1, 255, 256, 1 << 40, math.MaxInt64 - 1, math.MaxInt64}
	commit(t, s, func(b *Batch) {
		for _, removal := range removals {
			for _, key := range []string{"", "a", "a\x00", "\xff"} {
				b.SetMark(o, removal, key, 0, nil)
				want = append(want, fmt.Sprintf("%d %q", removal, key))
			}
			b.IndexMarks(o, removal)
		}
		setMark(b, other, 0, "a", 7, "")
	})
	for from, rest := range map[int64][]int64{0: removals, 2: removals[2:], 256: removals[3:], math.MaxInt64: removals[6:]} {
		if got, err := s.Buckets(o, from); err != nil || !slices.Equal(got, rest) {
			t.Errorf("buckets from %d: %v, %v; want %v", from, got, err, rest)
		}
	}
	for limit := 1; limit < len(want)+2; limit++ {
		var got []string
		removal, key, last := int64(0), "", false
		for !last {
			var err error
			last, err = s.Marks(o, removal, key, limit, func(r int64, k []byte) {
				removal, key = r, string(k)
				got = append(got, fmt.Sprintf("%d %q", r, k))
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, want[1:]) { // the first is the one before the start
			t.Errorf("in pieces of %d: %q, want %q", limit, got, want[1:])
		}
	}
}

// A mark is found in any bucket.
func TestFindMark(t *testing.T) {
	s := memStore(t)
	o := newObject(t, s, "c", "n")
	want := map[string]string{}
	commit(t, s, func(b *Batch) {
		for i := range int64(30) {
			key := fmt.Sprint(i)
			want[key] = "value of " + key
			setMark(b, o, 0, key, 1<<(30+i), want[key])
		}
	})
	got := map[string]string{}
	for i := range 31 {
		if v, _, ok, err := s.FindMark(o, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		} else if ok {
			got[fmt.Sprint(i)] = string(v)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

// MarksEnd is the time at which the last living mark of an object expires, with the
// changes of the batch. If the object has more marks than it may read, it is the time at
// which the last bucket is removed.
func TestMarksEnd(t *testing.T) {
	s := memStore(t)
	o := newObject(t, s, "c", "n")
	var b Batch
	const long = 1 << 40
	setMark(&b, o, 0, "a", 10, "")
	setMark(&b, o, 0, "b", 30, "")
	setMark(&b, o, 0, "c", 20, "")
	last := setMark(&b, o, 0, "d", long, "")
	if _, err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
	var later Batch
	later.DeleteMark(o, last, "d")
	for _, c := range []struct {
		batch      *Batch
		now, limit int64
		want       int64
	}{
		{nil, 0, 5, long}, {nil, long - 1, 5, long}, {nil, long, 5, 0}, {nil, last + 1, 5, 0},
		{&later, 0, 5, 30}, {&later, 29, 5, 30}, {&later, 30, 5, 0},
		{nil, 0, 4, last}, {nil, 29, 1, last}, {nil, last - 1, 1, last}, {nil, last, 0, 0}, {nil, math.MaxInt64, 1, 0},
	} {
		got, err := s.MarksEnd(c.batch, o, c.now, int(c.limit))
		if got != c.want || err != nil {
			t.Errorf("at %d with up to %d marks: %d, %v; want %d", c.now, c.limit, got, err, c.want)
		}
	}
	if got, err := s.MarksEnd(nil, Object{}, 0, 5); got != 0 || err != nil {
		t.Errorf("of no object: %d, %v", got, err)
	}
}

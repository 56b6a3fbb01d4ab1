package storage

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// readsEngine counts what is read, and calls got before a read of one row.
type readsEngine struct {
	engine.Engine
	rows, gets, iters, seeks int
	got                      func()
}

func (e *readsEngine) Get(key []byte) ([]byte, io.Closer, error) {
	e.gets++
	if e.got != nil {
		e.got()
	}
	return e.Engine.Get(key)
}

func (e *readsEngine) NewIter(lower, upper []byte) (engine.Iterator, error) {
	e.iters++
	it, err := e.Engine.NewIter(lower, upper)
	return &readsIter{it, e}, err
}

type readsIter struct {
	engine.Iterator
	e *readsEngine
}

// on counts a row if the iterator stands on one.
func (it *readsIter) on(ok bool) bool {
	if ok {
		it.e.rows++
	}
	return ok
}

func (it *readsIter) First() bool            { return it.sought(it.Iterator.First()) }
func (it *readsIter) Last() bool             { return it.on(it.Iterator.Last()) }
func (it *readsIter) Next() bool             { return it.on(it.Iterator.Next()) }
func (it *readsIter) Prev() bool             { return it.on(it.Iterator.Prev()) }
func (it *readsIter) SeekGE(key []byte) bool { return it.sought(it.Iterator.SeekGE(key)) }

// sought is on after a seek.
func (it *readsIter) sought(ok bool) bool {
	it.e.seeks++
	return it.on(ok)
}

// newReads opens a store over a counting engine.
func newReads(t *testing.T, shards int) (*Store, *readsEngine) {
	e := &readsEngine{Engine: memstore.New()}
	s := open(t, Options{Engine: e, Shards: shards})
	t.Cleanup(func() { checkAndClose(t, s) })
	return s, e
}

// namesOf are the names of a list, of which each object is as it is stored.
func namesOf(t testing.TB, s *Store, o ListOptions) (names []string) {
	t.Helper()
	found, err := s.List("c", o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if stored, err := s.Find(f.ID); err != nil || f != stored || f.ID.Class != "c" {
			t.Errorf("O15: listed %+v, stored %+v, %v", f, stored, err)
		}
		names = append(names, f.ID.Name)
	}
	return names
}

// modelList is the names that the options mean, of a map from names to labels.
func modelList(labels map[string]string, o ListOptions) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if name > o.After && strings.HasPrefix(name, o.Prefix) && (o.Label == (Label{}) || o.Label.String() == labels[name]) && len(names) < o.Limit {
			names = append(names, name)
		}
	}
	return names
}

// Proves O15: a list has the objects that all of its options mean, in the order of their
// names, in stores of one, few and many shards.
func TestListIsSorted(t *testing.T) {
	for _, shards := range []int{1, 4, 64} {
		s, _ := newReads(t, shards)
		labels := map[string]string{}
		for i, name := range append(hostileNames, "a2", "a3", "prefix", "prefiy") {
			labels[name] = []string{"", "failed", "failee"}[i%3]
			for _, class := range []string{"b", "c", "c2"} {
				relabel(t, s, newObject(t, s, class, name).ID, labels[name])
			}
		}
		bounds := append(slices.Collect(maps.Keys(labels)), "", "a1", "prefi", "pr", "zzz")
		for _, after := range bounds {
			for _, prefix := range bounds {
				for _, text := range []string{"", "failed", "fail", "none"} {
					for _, limit := range []int{-1, 0, 1, 2, 5, 1000} {
						o := ListOptions{Prefix: prefix, After: after, Label: label(t, text), Limit: limit}
						if got, want := namesOf(t, s, o), modelList(labels, o); !slices.Equal(got, want) {
							t.Fatalf("O15: %d shards, after %.9q, prefix %.9q, label %q, limit %d: %.40q, want %.40q", shards, after, prefix, text, limit, got, want)
						}
					}
				}
			}
		}
	}
}

// Proves O15: a page takes one iterator, a seek for each shard and one more for each portion of a shard that it lists, and
// reads a row for each shard and a few for each object, and with a label one header more for each, however many
// objects there are and wherever the page begins.
func TestListReadsAPage(t *testing.T) {
	const shards, all = 8, 3000
	s, e := newReads(t, shards)
	var b Batch
	for i := range all {
		for _, class := range []string{"b", "c", "d"} {
			id := ID{class, fmt.Sprintf("%02d/%04d", i%30, i)}
			o := Object{ID: id, Shard: s.ShardOf(id), Number: s.NewNumber(), Epoch: s.Epoch(), Label: label(t, []string{"failed", "paused"}[i%2])}
			b.MoveLabel(o, Label{}, o.Label)
			b.SetHeader(o)
		}
	}
	if _, err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 7, 31, 32, 100, 1000} {
		for _, o := range []ListOptions{{}, {After: "17/0500"}, {Prefix: "03/"}, {Prefix: "03/", After: "03/2"}, {Prefix: "absent"}, {After: "zzz"}} {
			for _, text := range []string{"", "failed", "absent"} {
				o.Limit, o.Label = limit, label(t, text)
				*e = readsEngine{Engine: e.Engine}
				found, err := s.List("c", o)
				if err != nil {
					t.Fatal(err)
				}
				n, gets := len(found), 0
				if text != "" {
					gets = n
				}
				portion := 1 + 3*limit/(2*shards)
				if e.rows > n+3*limit/2+shards || e.gets != gets || e.iters > 1 || e.seeks > shards+n/portion {
					t.Errorf("O15: %+v: %d objects in %d shards cost %d rows, %d reads of headers, %d iterators and %d seeks", o, n, shards, e.rows, e.gets, e.iters, e.seeks)
				}
			}
		}
	}
}

// Proves O15: while objects begin, end and change their labels between two pages, each object
// that is there all the time is listed once, in order, and each page is the list as it is then.
func TestListWhileObjectsComeAndGo(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) { comeAndGo(t, rt, memstore.New(), func() {}) })
	})
	t.Run("disk", func(t *testing.T) { // some rows are in tables, and some are in memory
		rapid.Check(t, func(rt *rapid.T) {
			e, err := pebblestore.Open("db", pebblestore.Options{FS: vfs.NewMem(), NoCompactions: true})
			if err != nil {
				rt.Fatal(err)
			}
			comeAndGo(t, rt, e, func() {
				if err := e.DB().Flush(); err != nil {
					rt.Fatal(err)
				}
			})
		})
	})
}

// comeAndGo lists the objects of a store page by page while they begin and end.
func comeAndGo(t *testing.T, rt *rapid.T, e engine.Engine, flush func()) {
	s := open(t, Options{Engine: e, Shards: rapid.IntRange(1, 9).Draw(rt, "shards")})
	defer checkAndClose(t, s)
	name := rapid.StringMatching(`[ab]{1,4}`)
	text := rapid.SampledFrom([]string{"", "failed", "paused"})
	labels := map[string]string{}
	set := func() {
		n, l := name.Draw(rt, "name"), text.Draw(rt, "label")
		if _, ok := labels[n]; !ok {
			newObject(t, s, "c", n)
		}
		relabel(t, s, ID{"c", n}, l)
		labels[n] = l
	}
	end := func() {
		if n := name.Draw(rt, "name"); labels[n] != "" || slices.Contains(slices.Collect(maps.Keys(labels)), n) {
			o := find(t, s, ID{"c", n})
			commit(t, s, func(b *Batch) { b.DeleteEmpty(o, nil) })
			delete(labels, n)
		}
	}
	for range rapid.IntRange(0, 40).Draw(rt, "objects") {
		set()
	}
	o := ListOptions{Limit: rapid.IntRange(1, 12).Draw(rt, "limit"), Prefix: rapid.StringMatching(`[ab]{0,2}`).Draw(rt, "prefix"), Label: label(t, text.Draw(rt, "of"))}
	always, seen := maps.Clone(labels), []string{}
	for {
		page := namesOf(t, s, o)
		if want := modelList(labels, o); !slices.Equal(page, want) {
			rt.Fatalf("O15: after %q: %q, want %q", o.After, page, want)
		}
		seen = append(seen, page...)
		if len(page) < o.Limit {
			break
		}
		o.After = page[len(page)-1]
		for range rapid.IntRange(0, 6).Draw(rt, "changes") {
			rapid.SampledFrom([]func(){set, end, flush}).Draw(rt, "change")()
			maps.DeleteFunc(always, func(n, l string) bool { now, ok := labels[n]; return !ok || now != l })
		}
	}
	whole := ListOptions{Limit: 1000, Prefix: o.Prefix, Label: o.Label}
	var kept []string
	for _, n := range seen {
		if _, ok := always[n]; ok {
			kept = append(kept, n)
		}
	}
	if want := modelList(always, whole); !slices.Equal(kept, want) || !slices.IsSorted(seen) || len(slices.Compact(slices.Clone(seen))) != len(seen) {
		rt.Fatalf("O15: listed %q, there all the time were %q", seen, want)
	}
}

// Proves O15: an object that ends or loses its label while the list is read is passed over.
func TestListPassesOverAChangedLabel(t *testing.T) {
	s, e := newReads(t, 1)
	for _, name := range []string{"a", "b", "c", "d"} {
		relabel(t, s, newObject(t, s, "c", name).ID, "failed")
	}
	e.got = func() {
		e.got = nil
		relabel(t, s, ID{"c", "a"}, "paused")
		relabel(t, s, ID{"c", "b"}, "")
		o := find(t, s, ID{"c", "c"})
		commit(t, s, func(b *Batch) { b.DeleteEmpty(o, nil) })
	}
	// The rows of the label are those before the change, because they are of one snapshot.
	if got := namesOf(t, s, ListOptions{Label: label(t, "failed"), Limit: 1000}); !slices.Equal(got, []string{"d"}) {
		t.Errorf("O15: listed %q", got)
	}
}

package storage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A batch over a store reads like a map: its own changes first, then the rows of the
// store, also after rollbacks, in both directions and over any bounds.
func TestBatchReadsLikeMap(t *testing.T) {
	s := memStore(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := newBatchModel(t, s)
		rt.Repeat(rapid.StateMachineActions(m))
	})
}

// A batch of few records, which is read one by one, answers as one with an overlay.
func TestSmallBatchReadsLikeALargeOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var b Batch
		for i := range rapid.IntRange(1, fewRecords).Draw(rt, "records") {
			key := keys.Draw(rt, "key")
			switch rapid.IntRange(0, 2).Draw(rt, "kind") {
			case 0:
				b.Set([]byte(key), fmt.Append(nil, i))
			case 1:
				b.Delete([]byte(key))
			default:
				b.DeleteRange([]byte(key), []byte(keys.Draw(rt, "upper")))
			}
		}
		for _, key := range []string{"", "\x00", "a", "a\x00", "aa", "ab", "abc", "b", "ba", "c", "z", "\xfe\xff", "\xff", "\xff\xff"} {
			value, deleted, known := b.scan([]byte(key))
			b.index()
			c, set := b.overlay[key]
			want, gone := string(b.data[c.from:c.to]), set && c.deleted || !set && b.covered(key)
			if string(value) != want || deleted != gone || known != (set || gone) {
				rt.Fatalf("%q: %q, deleted %v, known %v; the overlay has %q, set %v, deleted %v", key, value, deleted, known, want, set, gone)
			}
		}
	})
}

// Reads of ranges between many changes see each change once, in order.
func TestRangesBetweenManyChanges(t *testing.T) {
	m := newBatchModel(t, memStore(t))
	for round := range 4 {
		for i := range 100 {
			key := fmt.Sprint((i*37 + round*50) % 300)
			if i%3 == round%3 {
				m.batch.DeleteData(m.object, key)
				delete(m.seen, key)
			} else {
				m.batch.SetData(m.object, key, fmt.Append(nil, round))
				m.seen[key] = fmt.Sprint(round)
			}
		}
		if round == 2 {
			m.batch.DeleteDataRange(m.object, "2", "3")
			maps.DeleteFunc(m.seen, func(k, _ string) bool { return "2" <= k && k < "3" })
		}
		for _, bounds := range [][2]string{{"", ""}, {"1", "2"}, {"25", "251"}, {"299", "3"}} {
			got := list(t, m.store, &m.batch, m.object, bounds[0], bounds[1], false)
			if want := between(m.seen, bounds[0], bounds[1], false); !slices.Equal(got, want) {
				t.Fatalf("round %d, range %q: %q, want %q", round, bounds, got, want)
			}
		}
	}
}

// batchModel is a batch on one object, and a model of its reads.
type batchModel struct {
	t      testing.TB
	store  *Store
	object Object

	batch  Batch
	stored map[string]string // the committed values
	seen   map[string]string // the values that reads through the batch return

	savepoints []savedModel
}

type savedModel struct {
	place Savepoint
	seen  map[string]string
}

func newBatchModel(t testing.TB, s *Store) *batchModel {
	o := newObject(t, s, "model", fmt.Sprint("object ", s.NextSeq()))
	return &batchModel{t: t, store: s, object: o, stored: map[string]string{}, seen: map[string]string{}}
}

// keys are few and lie close together, so that changes meet.
var keys = rapid.SampledFrom([]string{"", "\x00", "a", "a\x00", "ab", "abc", "b", "ba", "z", "\xfe\xff", "\xff", "\xff\xff"})

func (m *batchModel) Set(rt *rapid.T) {
	key := keys.Draw(rt, "key")
	value := rapid.SampledFrom([]string{"", "1", "22", strings.Repeat("long", 200)}).Draw(rt, "value")
	m.batch.SetData(m.object, key, []byte(value))
	m.seen[key] = value
}

func (m *batchModel) Delete(rt *rapid.T) {
	key := keys.Draw(rt, "key")
	m.batch.DeleteData(m.object, key)
	delete(m.seen, key)
}

// DeleteRange takes any two bounds; the range of a lower bound that is not below
// the upper one is empty.
func (m *batchModel) DeleteRange(rt *rapid.T) {
	lower, upper := keys.Draw(rt, "lower"), keys.Draw(rt, "upper")
	m.batch.DeleteDataRange(m.object, lower, upper)
	maps.DeleteFunc(m.seen, func(k, _ string) bool { return lower <= k && (upper == "" || k < upper) })
}

// Clear deletes a range key by key, or as a range if there are many.
func (m *batchModel) Clear(rt *rapid.T) {
	lower, upper := keys.Draw(rt, "lower"), keys.Draw(rt, "upper")
	if err := m.store.DeleteDataRange(&m.batch, m.object, lower, upper); err != nil {
		rt.Fatal(err)
	}
	maps.DeleteFunc(m.seen, func(k, _ string) bool { return lower <= k && (upper == "" || k < upper) })
}

func (m *batchModel) Save(rt *rapid.T) {
	m.savepoints = append(m.savepoints, savedModel{m.batch.Savepoint(), maps.Clone(m.seen)})
}

func (m *batchModel) Rollback(rt *rapid.T) {
	if len(m.savepoints) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.savepoints)-1).Draw(rt, "savepoint")
	m.batch.Rollback(m.savepoints[i].place)
	m.seen = m.savepoints[i].seen
	m.savepoints = m.savepoints[:i]
}

// Commit applies the batch, after which the store alone must read like the map.
func (m *batchModel) Commit(rt *rapid.T) {
	if _, err := m.store.Commit(&m.batch); err != nil {
		rt.Fatal(err)
	}
	m.batch.Reset()
	m.savepoints = nil
	m.stored = maps.Clone(m.seen)
}

func (m *batchModel) Get(rt *rapid.T) {
	key := keys.Draw(rt, "key")
	v, ok, err := m.store.Data(&m.batch, m.object, key)
	want, wantOK := m.seen[key]
	if err != nil || ok != wantOK || string(v) != want {
		rt.Fatalf("Data(%q) = %q, %v, %v; want %q, %v", key, v, ok, err, want, wantOK)
	}
}

func (m *batchModel) List(rt *rapid.T) {
	lower, upper := keys.Draw(rt, "lower"), keys.Draw(rt, "upper")
	reverse := rapid.Bool().Draw(rt, "reverse")
	got := list(rt, m.store, &m.batch, m.object, lower, upper, reverse)
	if diff := cmp.Diff(between(m.seen, lower, upper, reverse), got); diff != "" {
		rt.Fatalf("list [%q, %q) reverse=%v (-want +got):\n%s", lower, upper, reverse, diff)
	}
}

// The empty name is rapid's: it runs after each action.
func (m *batchModel) Check(rt *rapid.T) {
	if got := list(rt, m.store, nil, m.object, "", "", false); !slices.Equal(got, between(m.stored, "", "", false)) {
		rt.Fatalf("the store holds %q before the commit, want %q", got, m.stored)
	}
	has, err := m.store.HasRows(&m.batch, m.object)
	if err != nil || has != (len(m.seen) > 0) {
		rt.Fatalf("HasRows = %v, %v with %d keys", has, err, len(m.seen))
	}
}

// list returns the rows of ListData, as key=value.
func list(t rapid.TB, s *Store, b *Batch, o Object, lower, upper string, reverse bool) []string {
	it, err := s.ListData(b, o, lower, upper, reverse)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for it.Next() {
		out = append(out, string(it.Key())+"="+string(it.Value()))
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// between is a model of list: the part of m between the bounds.
func between(m map[string]string, lower, upper string, reverse bool) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if lower <= k && (upper == "" || k < upper) {
			out = append(out, k+"="+m[k])
		}
	}
	if reverse {
		slices.Reverse(out)
	}
	return out
}

// A batch deletes a range and then sets a key in it. Its reads see the key, in a batch
// that is read one by one and in one with an overlay. Proves S2's last sentence.
func TestReadsAfterADeletedRange(t *testing.T) {
	for name, before := range map[string]int{"few records": 0, "overlay": fewRecords + 1} {
		t.Run(name, func(t *testing.T) {
			s := memStore(t)
			m := newBatchModel(t, s)
			for i := range before {
				m.batch.SetData(m.object, fmt.Sprint("other", i), nil)
			}
			m.batch.SetData(m.object, "a", []byte("old"))
			m.batch.DeleteDataRange(m.object, "", "")
			m.batch.SetData(m.object, "a", []byte("new"))
			if v, ok, err := s.Data(&m.batch, m.object, "a"); string(v) != "new" || !ok || err != nil {
				t.Errorf("S2: a key set after the range reads %q, %v, %v", v, ok, err)
			}
			m.batch.DeleteDataRange(m.object, "", "")
			if v, ok, err := s.Data(&m.batch, m.object, "a"); ok || err != nil {
				t.Errorf("S2: a key deleted by a range reads %q, %v", v, err)
			}
		})
	}
}

// An iterator shows the moment it was made, without later commits. Proves S4's snapshot.
func TestIterShowsItsMoment(t *testing.T) {
	s := memStore(t)
	o := newObject(t, s, "c", "n")
	commit(t, s, func(b *Batch) { b.SetData(o, "a", []byte("1")); b.SetData(o, "c", []byte("3")) })

	var b Batch
	b.SetData(o, "b", []byte("2"))
	it, err := s.ListData(&b, o, "", "", false)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()

	b.SetData(o, "b", []byte("later"))
	b.SetData(o, "bb", []byte("later"))
	b.DeleteDataRange(o, "", "")
	commit(t, s, func(b *Batch) { b.SetData(o, "c", []byte("later")); b.SetData(o, "d", []byte("later")) })
	var got []string
	for it.Next() {
		got = append(got, string(it.Key())+string(it.Value()))
	}
	if want := []string{"a1", "b2", "c3"}; !slices.Equal(got, want) || it.Err() != nil {
		t.Errorf("got %q, %v; want %q", got, it.Err(), want)
	}
}

// The result of a read stays as it was when the batch is changed afterwards.
func TestReadsAreCopies(t *testing.T) {
	s := memStore(t)
	o := newObject(t, s, "c", "n")
	var b Batch
	b.SetData(o, "k", []byte("first"))
	v, _, err := s.Data(&b, o, "k")
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
	b.SetData(o, "k", []byte("other"))
	if string(v) != "first" {
		t.Errorf("the value became %q", v)
	}
}

func TestResetKeepsNoChange(t *testing.T) {
	s := memStore(t)
	o := newObject(t, s, "c", "n")
	for _, size := range []int{1, 100 << 10} { // below and above the size that Reset keeps
		var b Batch
		b.For(o.ID)
		b.SetData(o, "k", make([]byte, size))
		if _, ok, _ := s.Data(&b, o, "k"); !ok {
			t.Fatal("the batch does not read its own write")
		}
		b.Reset()
		if _, ok, _ := s.Data(&b, o, "k"); ok || !b.Empty() || b.Len() != 0 || b.id != (ID{}) {
			t.Errorf("after Reset of %d bytes: key %v, empty %v, %d bytes, id %v", size, ok, b.Empty(), b.Len(), b.id)
		}
	}
}

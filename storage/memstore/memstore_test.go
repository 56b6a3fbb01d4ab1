package memstore_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

func apply(t testing.TB, s *memstore.Store, change func(b *storage.Batch)) {
	t.Helper()
	var b storage.Batch
	change(&b)
	if err := s.Apply(b.Repr()); err != nil {
		t.Fatal(err)
	}
}

func set(t testing.TB, s *memstore.Store, key, value string) {
	t.Helper()
	apply(t, s, func(b *storage.Batch) { b.Set([]byte(key), []byte(value)) })
}

// keys is every key and value of s, in the order of an iterator.
func keys(t testing.TB, s *memstore.Store) []string {
	t.Helper()
	it, err := s.NewIter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for ok := it.First(); ok; ok = it.Next() {
		v, _ := it.ValueAndErr()
		out = append(out, fmt.Sprintf("%s=%s", it.Key(), v))
	}
	return out
}

// The synced batches and a prefix of the later ones survive a crash.
func TestCrashKeepsPrefix(t *testing.T) {
	s := memstore.New()
	set(t, s, "a", "1")
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	set(t, s, "b", "2")
	apply(t, s, func(b *storage.Batch) { b.Delete([]byte("a")); b.Set([]byte("c"), []byte("3")) })

	for keep, want := range [][]string{{"a=1"}, {"a=1", "b=2"}, {"b=2", "c=3"}, {"b=2", "c=3"}} {
		if got := keys(t, s.Crash(keep)); !slices.Equal(got, want) {
			t.Errorf("crash that keeps %d: %v, want %v", keep, got, want)
		}
	}
	if got := s.Unsynced(); got != 2 {
		t.Errorf("unsynced = %d, want 2", got)
	}
	again := s.Crash(1).Crash(9)
	if got := keys(t, again); !slices.Equal(got, []string{"a=1", "b=2"}) {
		t.Errorf("rows that survived one crash must survive the next: %v", got)
	}
}

func TestSnapshotDoesNotMove(t *testing.T) {
	s := memstore.New()
	set(t, s, "a", "1")
	set(t, s, "b", "1")
	it, _ := s.NewIter([]byte("a"), []byte("z"))
	set(t, s, "b", "2")
	apply(t, s, func(b *storage.Batch) { b.DeleteRange([]byte("a"), []byte("b")) })
	if !it.First() || string(it.Key()) != "a" {
		t.Fatal("the snapshot lost a key")
	}
	if v, _ := it.ValueAndErr(); !it.Next() || string(it.Key()) != "b" || string(v) != "1" {
		t.Fatal("the snapshot changed")
	}
}

func TestClosed(t *testing.T) {
	s := memstore.New()
	set(t, s, "a", "1")
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(); err == nil {
		t.Error("sync of a closed store succeeds")
	}
	if got := keys(t, s.Crash(0)); !slices.Equal(got, []string{"a=1"}) {
		t.Errorf("close does not make durable: %v", got)
	}
}

// The store answers as a map does, in either direction and between any bounds.
func TestAgainstMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, model := memstore.New(), map[string]string{}
		key := rapid.StringMatching(`[a-d]{0,3}`)
		for range rapid.IntRange(0, 40).Draw(rt, "batches") {
			apply(t, s, func(b *storage.Batch) {
				for range rapid.IntRange(0, 3).Draw(rt, "records") {
					k, to := key.Draw(rt, "key"), key.Draw(rt, "to")
					switch rapid.IntRange(0, 5).Draw(rt, "kind") {
					case 0:
						b.Delete([]byte(k))
						delete(model, k)
					case 1:
						b.DeleteRange([]byte(k), []byte(to))
						maps.DeleteFunc(model, func(m, _ string) bool { return k <= m && m < to })
					default:
						b.Set([]byte(k), []byte(to))
						model[k] = to
					}
				}
			})
		}
		lower, upper := key.Draw(rt, "lower"), key.Draw(rt, "upper")
		var want []string
		for _, k := range slices.Sorted(maps.Keys(model)) {
			if lower <= k && k < upper {
				want = append(want, k)
			}
		}
		it, _ := s.NewIter([]byte(lower), []byte(upper))
		var up, down []string
		for ok := it.First(); ok; ok = it.Next() {
			up = append(up, string(it.Key()))
		}
		for ok := it.Last(); ok; ok = it.Prev() {
			down = append(down, string(it.Key()))
		}
		slices.Reverse(down)
		if !slices.Equal(up, want) || !slices.Equal(down, want) {
			rt.Fatalf("up %q, down %q, want %q", up, down, want)
		}
		at := key.Draw(rt, "seek")
		i, _ := slices.BinarySearch(want, at)
		if got := it.SeekGE([]byte(at)); got != (i < len(want)) || got && string(it.Key()) != want[i] {
			rt.Fatalf("SeekGE(%q) among %q", at, want)
		}
		if got := it.SeekLT([]byte(at)); got != (i > 0) || got && string(it.Key()) != want[i-1] {
			rt.Fatalf("SeekLT(%q) among %q", at, want)
		}
		low, high := key.Draw(rt, "low"), key.Draw(rt, "high")
		it.SetBounds([]byte(low), []byte(high))
		if it.Valid() {
			rt.Fatal("new bounds, and the iterator stands on a key")
		}
		var within []string
		for ok := it.First(); ok; ok = it.Next() {
			within = append(within, string(it.Key()))
		}
		bounded := slices.DeleteFunc(slices.Sorted(maps.Keys(model)), func(k string) bool { return k < low || k >= high })
		if !slices.Equal(within, bounded) {
			rt.Fatalf("from %q to %q: %q, want %q", low, high, within, bounded)
		}
		for k, v := range model {
			if got, _, err := s.Get([]byte(k)); err != nil || string(got) != v {
				rt.Fatalf("get %q = %q, %v; want %q", k, got, err, v)
			}
		}
	})
}

func BenchmarkApply(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := memstore.New()
			for i := range b.N {
				set(b, s, fmt.Sprint(i*7919%n), "value")
				_ = s.Sync()
			}
		})
	}
}

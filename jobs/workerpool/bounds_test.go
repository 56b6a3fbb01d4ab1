package workerpool

import "testing"

// Bounds of a partition, on both sides.

// Proves W3. Case PL8. The shares of all partitions are Concurrency in sum, or one
// for each partition if the pool has had more of them than Concurrency.
func TestSharesSumUp(t *testing.T) {
	for total := 1; total <= 40; total++ {
		for n := 1; n <= 60; n++ {
			sum := 0
			for i := range n {
				sum += share(total, n, i)
			}
			if want := max(total, n); sum != want {
				t.Errorf("%d partitions share %d: %d in all, want %d", n, total, sum, want)
			}
		}
	}
}

// Proves W4. Case PL11. A window holds 8,192 entries and no more. The next entry stays in
// storage.
func TestWindowBound(t *testing.T) {
	p := New(Config[int, int]{Name: "bound"})
	if p.pool.set.window != 8192 {
		t.Errorf("a window holds %d entries, want 8192", p.pool.set.window)
	}
	w := window{max: p.pool.set.window}
	for i := range w.max {
		w.add(entry{place: place{order: uint64(i)}})
	}
	if w.trim(); len(w.entries) != 8192 || w.more {
		t.Errorf("a full window holds %d entries; more are stored: %t", len(w.entries), w.more)
	}
	w.add(entry{place: place{order: 8192}})
	if w.trim(); len(w.entries) != 8192 || !w.more || w.edge != (place{order: 8191}) {
		t.Errorf("one more: it holds %d entries up to %v; more are stored: %t", len(w.entries), w.edge, w.more)
	}
	if w.add(entry{place: place{order: 8192}}) || !w.add(entry{place: place{order: 8190}}) {
		t.Error("an entry beyond the edge is taken, or one before it is not")
	}
}

package shardlogtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// collect removes the blobs of a shard that no snapshot names.
func (d *directory) collect(shard int, term uint64) error {
	return again(func() error { return d.c.Engine.Collect(context.Background(), shard, term) })
}

// collected is collect, which must succeed.
func (d *directory) collected(t TB, shard int, term uint64) {
	t.Helper()
	if err := d.collect(shard, term); err != nil {
		t.Fatalf("collect the blobs of shard %d: %v", shard, err)
	}
}

// collect: a collection removes the blobs that no snapshot names, and no others.
func collect(t TB, d *directory) {
	shard, other := d.next(), d.next()
	d.put(t, shard, "of nobody")
	d.put(t, other, "of nobody")
	d.collected(t, shard, 0) // before a claim
	d.list(t, shard)
	d.list(t, other, "of nobody")

	w := d.claim(t, shard, "a")
	w.must(t, "1", "2")
	second := d.of(t, w, "a", "b")
	d.registered(t, w, second)
	w.must(t, "3")
	third := d.of(t, w, "b", "c")
	d.registered(t, w, third)
	d.put(t, shard, "d")
	d.list(t, shard, "a", "b", "c", "d")
	for range 2 {
		d.collected(t, shard, w.State.Term)
		d.list(t, shard, "a", "b", "c")
	}
	d.remove(t, shard, 3)
	d.collected(t, shard, w.State.Term)
	d.list(t, shard, "b", "c")
	d.missing(t, shard, "a")
	d.snapshotsAre(t, shard, third)
	replaced := d.of(t, w, "c", "e")
	d.registered(t, w, replaced)
	d.collected(t, shard, w.State.Term)
	d.list(t, shard, "c", "e")
	d.put(t, shard, "a") // what was removed can come back
	d.list(t, shard, "a", "c", "e")
}

// collectRefused: only the owner collects, so a fenced one removes nothing that the next has put. In quarantine all stays.
func collectRefused(t TB, d *directory) {
	a := d.claim(t, d.next(), "a")
	b := d.claim(t, a.Shard, "b")
	d.put(t, a.Shard, "of b")
	for _, term := range []uint64{0, a.State.Term, b.State.Term + 1} {
		refusedBy(t, fmt.Sprintf("a collection of term %d in term %d", term, b.State.Term), d.collect(a.Shard, term), shardlog.ErrFenced)
	}
	d.lose(t, a.Shard, "record 1")
	for _, term := range []uint64{b.State.Term, b.State.Term + 1} {
		refusedBy(t, "a collection in quarantine", d.collect(a.Shard, term), shardlog.ErrFenced)
	}
	d.list(t, a.Shard, "of b")
}

// collectBeside: of a registration and a collection beside one another, the blobs are there if the registration has succeeded.
func collectBeside(t TB, d *directory) {
	w := d.claim(t, d.next(), "a")
	for i := range 50 {
		w.must(t, fmt.Sprint(i))
		s := d.of(t, w, fmt.Sprint("a", i), fmt.Sprint("b", i))
		var beside sync.WaitGroup
		beside.Go(func() {
			if err := d.collect(w.Shard, w.State.Term); err != nil {
				t.Errorf("collect: %v", err)
			}
		})
		err := d.register(w.Shard, w.State.Term, s)
		beside.Wait()
		switch {
		case err == nil:
			d.list(t, w.Shard, s.Blobs...)
		case !errors.Is(err, shardlog.ErrMissing):
			t.Errorf("register beside a collection: %v", err)
		}
		d.remove(t, w.Shard, w.State.Last)
		w.must(t, "next")
		d.remove(t, w.Shard, w.State.Last)
		d.collected(t, w.Shard, w.State.Term)
		d.list(t, w.Shard)
	}
}

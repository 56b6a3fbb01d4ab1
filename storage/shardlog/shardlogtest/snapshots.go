package shardlogtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// of is a snapshot of the state that an owner knows, with blobs that are there afterwards.
func (d *directory) of(t TB, w *Writer, names ...string) shardlog.Snapshot {
	t.Helper()
	d.put(t, w.Shard, names...)
	return shardlog.Snapshot{Last: w.State.Last, Chain: w.State.Chain, Manifest: []byte(fmt.Sprint(names, "\x00\xff")), Blobs: names}
}

// register registers a snapshot.
func (d *directory) register(shard int, term uint64, s shardlog.Snapshot) error {
	return again(func() error { return d.c.Engine.Register(context.Background(), shard, term, s) })
}

// registered registers a snapshot under the term of an owner, and fails the test unless that succeeds.
func (d *directory) registered(t TB, w *Writer, s shardlog.Snapshot) {
	t.Helper()
	must(t, fmt.Sprintf("register the snapshot of record %d", s.Last), func() error {
		return d.c.Engine.Register(context.Background(), w.Shard, w.State.Term, s)
	})
}

// snapshotsAre compares the snapshots of a shard with those that it must have.
func (d *directory) snapshotsAre(t TB, shard int, want ...shardlog.Snapshot) {
	t.Helper()
	var got []shardlog.Snapshot
	must(t, "list the snapshots", func() (err error) {
		got, err = d.c.Engine.Snapshots(context.Background(), shard)
		return err
	})
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("shard %d has the snapshots %.300q, want %.300q", shard, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
	}
}

func same(a, b shardlog.Snapshot) bool {
	return a.Last == b.Last && a.Chain == b.Chain && bytes.Equal(a.Manifest, b.Manifest) && slices.Equal(a.Blobs, b.Blobs)
}

// refusedBy compares the error of a call that must change nothing.
func refusedBy(t TB, about string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want the error %q", about, err, want)
	}
}

// begin: a fresh log begins behind its base, and the base is a snapshot of it. A repeat is nil, also when the log has gone on.
func begin(t TB, d *directory) {
	shard := d.next()
	base := d.of(t, &Writer{Shard: shard, State: shardlog.State{Last: 1, Chain: 0xfedcba9876543210}}, "x", "y")
	call := func() error { return d.c.Engine.Begin(context.Background(), shard, base) }
	fresh := shardlog.State{First: 2, Last: 1, Chain: base.Chain}
	for range 2 {
		must(t, "begin", call)
		d.headIs(t, shard, fresh)
		d.snapshotsAre(t, shard, base)
	}
	d.beginsLater(t, shard, 1)
	d.holds(t, shard)
	w := d.claim(t, shard, "a")
	if w.State.Term != 1 {
		t.Errorf("the first claim of a log with a base returned term %d", w.State.Term)
	}
	w.must(t, "2", "3")
	must(t, "begin again, after records", call)
	d.headIs(t, shard, w.State)
	d.holds(t, shard, "2", "3")
	d.snapshotsAre(t, shard, base)
}

// beginRefused: a log that is not fresh takes no base, and no log takes a base without its blobs.
func beginRefused(t TB, d *directory) {
	for _, k := range []struct {
		about string
		does  func(shard int)
	}{
		{"a claim", func(shard int) { d.claim(t, shard, "a") }},
		{"a record", func(shard int) { d.claim(t, shard, "a").must(t, "1") }},
		{"a truncated record", func(shard int) { d.claim(t, shard, "a").must(t, "1"); d.remove(t, shard, 1) }},
		{"a quarantine", func(shard int) { d.lose(t, shard, "record 1") }},
		{"another base", func(shard int) {
			must(t, "begin", func() error {
				return d.c.Engine.Begin(context.Background(), shard, shardlog.Snapshot{Last: 1, Chain: 6})
			})
		}},
		{"the base with another manifest", func(shard int) {
			s := shardlog.Snapshot{Last: 1, Chain: 5, Manifest: []byte("m")}
			must(t, "begin", func() error { return d.c.Engine.Begin(context.Background(), shard, s) })
		}},
	} {
		shard := d.next()
		k.does(shard)
		h := Head(t, d.c.Engine, shard)
		err := again(func() error {
			return d.c.Engine.Begin(context.Background(), shard, shardlog.Snapshot{Last: 1, Chain: 5})
		})
		refusedBy(t, "a base after "+k.about, err, shardlog.ErrRefused)
		d.headIs(t, shard, h)
	}
	shard := d.next()
	base := d.of(t, &Writer{Shard: shard, State: shardlog.State{Last: 1, Chain: 5}}, "x")
	base.Blobs = []string{"x", "z"}
	d.put(t, d.next(), "z") // of another shard
	refusedBy(t, "a base without one of its blobs", again(func() error { return d.c.Engine.Begin(context.Background(), shard, base) }), shardlog.ErrMissing)
	base.Last, base.Blobs = 0, nil
	refusedBy(t, "a base before record 1", again(func() error { return d.c.Engine.Begin(context.Background(), shard, base) }), shardlog.ErrRefused)
	d.headIs(t, shard, shardlog.State{First: 1})
	d.snapshotsAre(t, shard)
}

// register: the owner's snapshots are there as they are, the newest first, one for each position.
func register(t TB, d *directory) {
	w := d.claim(t, d.next(), "a")
	first := d.of(t, w) // of an empty log, without blobs
	first.Manifest = nil
	d.registered(t, w, first)
	w.must(t, "1", "2", "3")
	third := d.of(t, w, "b", "a") // in their order
	w.must(t, "4")
	fourth := d.of(t, w, "a", "c")
	d.registered(t, w, fourth)
	d.snapshotsAre(t, w.Shard, fourth, first)
	for range 2 {
		d.registered(t, w, third) // is late, or a repeat
		d.snapshotsAre(t, w.Shard, fourth, third, first)
	}
	newer := d.of(t, w, "d") // of the position of the fourth
	d.registered(t, w, newer)
	d.snapshotsAre(t, w.Shard, newer, third, first)
	d.snapshotsAre(t, d.next())
	d.headIs(t, w.Shard, w.State)
	w.must(t, "5")
	b := d.claim(t, w.Shard, "b")
	fifth := d.of(t, b, "e")
	d.registered(t, b, fifth)
	d.snapshotsAre(t, w.Shard, fifth, newer, third, first)
}

// registerRefused: a snapshot of another term, without a blob or of no place of the log is not registered.
func registerRefused(t TB, d *directory) {
	a := d.claim(t, d.next(), "a")
	a.must(t, "1", "2", "3")
	snapshot := d.of(t, a, "x")
	b := d.claim(t, a.Shard, "b")
	term := b.State.Term
	for _, other := range []uint64{0, a.State.Term, term + 1} {
		refusedBy(t, fmt.Sprintf("a snapshot of term %d in term %d", other, term), d.register(a.Shard, other, snapshot), shardlog.ErrFenced)
	}
	d.put(t, d.next(), "z") // of another shard
	lacks := snapshot
	lacks.Blobs = []string{"x", "z"}
	refusedBy(t, "a snapshot without one of its blobs", d.register(a.Shard, term, lacks), shardlog.ErrMissing)
	for _, at := range []shardlog.Position{2, 4} {
		s := snapshot
		s.Last = at
		refusedBy(t, fmt.Sprintf("a snapshot of record %d with the chain of record 3", at), d.register(a.Shard, term, s), shardlog.ErrRefused)
	}
	d.remove(t, a.Shard, 2)
	early := snapshot
	early.Last, early.Chain = 1, shardlog.Next(0, []byte("1"))
	refusedBy(t, "a snapshot that misses record 2", d.register(a.Shard, term, early), shardlog.ErrRefused)
	d.snapshotsAre(t, a.Shard)
	early.Last, early.Chain = 2, shardlog.Next(early.Chain, []byte("2")) // the last one that was removed
	d.registered(t, b, early)
	d.snapshotsAre(t, a.Shard, early)

	d.lose(t, a.Shard, "record 4")
	for _, of := range []uint64{term, term + 1} {
		refusedBy(t, "a snapshot in quarantine", d.register(a.Shard, of, snapshot), shardlog.ErrFenced)
	}
	unclaimed := d.next()
	refusedBy(t, "a snapshot of a shard without an owner", d.register(unclaimed, 0, shardlog.Snapshot{}), shardlog.ErrFenced)
	d.snapshotsAre(t, a.Shard, early)
	d.snapshotsAre(t, unclaimed)
}

// snapshots: a truncation behind the end of a snapshot removes it, because records between the two are gone.
func snapshots(t TB, d *directory) {
	w := d.claim(t, d.next(), "a")
	var all []shardlog.Snapshot // the newest first
	for i := range 4 {
		w.must(t, fmt.Sprint(2*i+1), fmt.Sprint(2*i+2))
		s := d.of(t, w, fmt.Sprint(i))
		d.registered(t, w, s)
		all = append([]shardlog.Snapshot{s}, all...)
	}
	for _, k := range []struct {
		upTo  shardlog.Position
		stays int
	}{{1, 4}, {2, 4}, {3, 3}, {6, 2}, {7, 1}, {8, 1}} {
		d.remove(t, w.Shard, k.upTo)
		d.snapshotsAre(t, w.Shard, all[:k.stays]...)
	}
	w.must(t, "9")
	d.remove(t, w.Shard, 9)
	d.snapshotsAre(t, w.Shard)
}

package shardlogtest

import (
	"context"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// endedDirectory: a call with a context that has ended leaves its outcome unknown, and the directory works on.
func endedDirectory(t TB, d *directory) {
	ctx, end := context.WithCancel(context.Background())
	end()
	w := d.claim(t, d.next(), "a")
	w.must(t, "1")
	snapshot := d.of(t, w, "x")
	n := d.join(t, shardlog.Node{ID: d.node("ends")})
	e, other, lost := d.c.Engine, d.next(), d.next()
	for _, k := range []struct {
		about string
		call  func(ctx context.Context) error
	}{
		{"Cluster", func(ctx context.Context) error { _, err := e.Cluster(ctx); return err }},
		{"Beat", func(ctx context.Context) error { _, err := e.Beat(ctx, w.Shard, n); return err }},
		{"Look", func(ctx context.Context) error { _, err := e.Look(ctx, w.Shard); return err }},
		{"Forget", func(ctx context.Context) error { return e.Forget(ctx, 0) }},
		{"Begin", func(ctx context.Context) error { return e.Begin(ctx, other, shardlog.Snapshot{Last: 1, Chain: 1}) }},
		{"Register", func(ctx context.Context) error { return e.Register(ctx, w.Shard, w.State.Term, snapshot) }},
		{"Snapshots", func(ctx context.Context) error { _, err := e.Snapshots(ctx, w.Shard); return err }},
		{"Put", func(ctx context.Context) error { return d.putting(ctx, w.Shard, "y") }},
		{"Get", func(ctx context.Context) error { return e.Get(ctx, w.Shard, "x", func([]byte) error { return nil }) }},
		{"List", func(ctx context.Context) error { _, err := e.List(ctx, w.Shard); return err }},
		{"Collect", func(ctx context.Context) error { return e.Collect(ctx, w.Shard, w.State.Term) }},
		{"NoteLate", func(ctx context.Context) error { return e.NoteLate(ctx, lost, "record 1") }},
		{"Quarantine", func(ctx context.Context) error { return e.Quarantine(ctx, lost, "record 1") }},
		{"Recover", func(ctx context.Context) error { _, err := e.Recover(ctx, lost, 1, 0, nil); return err }},
	} {
		if err := k.call(ctx); !unknown(err) {
			t.Errorf("%s with a context that has ended returned %v, want an error that leaves the outcome unknown", k.about, err)
		}
		if err := again(func() error { return k.call(context.Background()) }); err != nil {
			t.Errorf("%s again, with a context that lasts: %v", k.about, err)
		}
	}
	d.list(t, w.Shard, "x")
	d.snapshotsAre(t, w.Shard, snapshot)
	d.headIs(t, lost, shardlog.State{First: 1, Term: 1})
}

// durableDirectory: all but the rows of nodes and the blobs of no snapshot survives a power loss right after it.
func durableDirectory(t TB, d *directory) {
	w := d.claim(t, d.next(), "a")
	w.must(t, "1", "2")
	snapshot := d.of(t, w, "x", "y")
	d.registered(t, w, snapshot)
	d.restart(w)
	d.snapshotsAre(t, w.Shard, snapshot)
	d.whole(t, w.Shard, "x", "y")
	d.put(t, w.Shard, "z") // may be lost, because nothing durable comes behind it
	d.restart(w)
	d.whole(t, w.Shard, "x", "y")
	d.headIs(t, w.Shard, w.State)

	imported := d.next()
	base := d.of(t, &Writer{Shard: imported, State: shardlog.State{Last: 1, Chain: 9}}, "b")
	must(t, "begin", func() error { return d.c.Engine.Begin(context.Background(), imported, base) })
	d.restart()
	d.headIs(t, imported, shardlog.State{First: 2, Last: 1, Chain: 9})
	d.snapshotsAre(t, imported, base)
	d.list(t, imported, "b")

	b, records, h := d.loses(t)
	d.restart()
	d.headIs(t, b.Shard, h)
	d.noteLate(t, b.Shard, "record 1")
	d.restart()
	d.lateIs(t, b.Shard, "record 1", h)
	h, err := d.recovers(b.Shard, h.Term, h.Chain, records[2:]...)
	if err != nil {
		t.Fatalf("recover: %v", err)
	}
	d.restart()
	d.lateIs(t, b.Shard, "", h)
	d.holds(t, b.Shard, "1", "2", "3", "4", "5")

	d.collected(t, w.Shard, w.State.Term)
	d.restart()
	d.list(t, w.Shard, "x", "y")
}

// whole checks that blobs are there, and that each other one is whole.
func (d *directory) whole(t TB, shard int, names ...string) {
	t.Helper()
	found := make(map[string]bool)
	for _, b := range d.blobsOf(t, shard) {
		found[b.Name] = true
		if got, err := d.get(t, shard, b.Name); err != nil || string(got) != b.Name {
			t.Errorf("get %s after the power loss: %.50q, %v", b.Name, got, err)
		}
	}
	for _, name := range names {
		if !found[name] {
			t.Errorf("blob %s of a snapshot is gone after the power loss", name)
		}
	}
}

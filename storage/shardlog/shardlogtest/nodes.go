package shardlogtest

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// beat stores the row of a node.
func (d *directory) beat(t TB, shard int, n shardlog.Node) (look shardlog.Look) {
	t.Helper()
	must(t, "the beat of node "+n.ID, func() (err error) {
		look, err = d.c.Engine.Beat(context.Background(), shard, n)
		return err
	})
	return look
}

// look looks at the directory.
func (d *directory) look(t TB, shard int) (look shardlog.Look) {
	t.Helper()
	must(t, "look", func() (err error) {
		look, err = d.c.Engine.Look(context.Background(), shard)
		return err
	})
	return look
}

// join begins an incarnation of a node, and returns its row.
func (d *directory) join(t TB, n shardlog.Node) shardlog.Node {
	t.Helper()
	n.Incarnation = 0
	row := rowOf(d.beat(t, d.next(), n), n.ID)
	n.Incarnation = row.Incarnation
	if row != n || row.Incarnation == 0 {
		t.Fatalf("the first beat of node %+v stored the row %+v", n, row)
	}
	return row
}

// rowOf returns the row of a node, or the zero Node.
func rowOf(look shardlog.Look, id string) shardlog.Node {
	i := slices.IndexFunc(look.Nodes, func(n shardlog.Node) bool { return n.ID == id })
	if i < 0 {
		return shardlog.Node{}
	}
	return look.Nodes[i]
}

// forgetAll removes the rows of all nodes.
func (d *directory) forgetAll(t TB) {
	t.Helper()
	must(t, "forget all nodes", func() error { return d.c.Engine.Forget(context.Background(), 0) })
}

// cluster: the cluster has a name, and that stays, whatever its nodes and shards do.
func cluster(t TB, d *directory) {
	var first string
	same := func(after string) {
		t.Helper()
		for range 2 {
			var name string
			must(t, "ask for the cluster", func() (err error) {
				name, err = d.c.Engine.Cluster(context.Background())
				return err
			})
			if first == "" {
				first = name
			}
			if len(name) != 32 || strings.Trim(name, "0123456789abcdef") != "" || name != first {
				t.Errorf("after %s the cluster is %q, at first it was %q, want 32 digits from 0 to 9 and a to f that stay", after, name, first)
			}
		}
	}
	same("nothing")
	d.forgetAll(t)
	d.join(t, shardlog.Node{ID: d.node("names")})
	same("a beat")
	w := d.claim(t, d.next(), "a")
	w.must(t, "1")
	d.claim(t, w.Shard, "b")
	same("two claims")
	d.restart()
	same("a power loss")
}

// rows: a look shows each node as its last beat was, in the order of the ids, whichever shard it is for.
func rows(t TB, d *directory) {
	d.forgetAll(t)
	b := d.join(t, shardlog.Node{ID: "b", Addr: "127.0.0.1:2", Version: 3, Beat: math.MaxInt64})
	a := d.join(t, shardlog.Node{ID: "a", Draining: true})
	same := func(look shardlog.Look) {
		t.Helper()
		if want := []shardlog.Node{a, b}; !slices.Equal(look.Nodes, want) {
			t.Errorf("the look shows %+v, want %+v", look.Nodes, want)
		}
	}
	shard := d.next()
	for range 2 {
		same(d.look(t, shard)) // the first look has changed nothing
	}
	for _, change := range []func(){
		func() { a.Beat++ },
		func() { a.Beat++ },
		func() { a.Draining, a.Addr, a.Version = false, "[::1]:1", 4 },
		func() { a.Beat = 1 },
		func() {}, // the shard of the node hangs
	} {
		change()
		same(d.beat(t, shard, a))
		same(d.look(t, d.next()))
	}
	_, err := d.c.Engine.Beat(context.Background(), shard, shardlog.Node{})
	if !unknown(err) && !errors.Is(err, shardlog.ErrRefused) {
		t.Errorf("the beat of a node without an id: %v, want ErrRefused", err)
	}
	same(d.look(t, shard))
}

// incarnations: each process that begins has a number higher than all before, and the older one of an id is fenced.
func incarnations(t TB, d *directory) {
	id := d.node("twice")
	highest := uint64(0)
	join := func(id string) shardlog.Node {
		t.Helper()
		n := d.join(t, shardlog.Node{ID: id, Addr: "of its own", Beat: 7})
		if n.Incarnation <= highest {
			t.Errorf("incarnation %d was given after %d", n.Incarnation, highest)
		}
		highest = n.Incarnation
		return n
	}
	shard := d.next()
	old := join(id)
	join(d.node("other"))
	owner := join(id)
	fenced := func() {
		t.Helper()
		old.Beat++
		err := again(func() error { _, err := d.c.Engine.Beat(context.Background(), shard, old); return err })
		if !errors.Is(err, shardlog.ErrFenced) {
			t.Errorf("the beat of the older process with the id: %v, want ErrFenced", err)
		}
		if row := rowOf(d.look(t, shard), id); row != owner {
			t.Errorf("the row is %+v after it, want %+v", row, owner)
		}
	}
	fenced()
	owner.Beat++
	d.beat(t, shard, owner)
	fenced()

	d.forgetAll(t)
	d.beat(t, shard, owner) // its row comes back
	fenced()
	d.restart()
	d.forgetAll(t)
	join(id)
}

// forget: rows with a last beat long ago are removed, and no others.
func forget(t TB, d *directory) {
	n := d.join(t, shardlog.Node{ID: d.node("forgotten")})
	must(t, "forget nodes of a week ago", func() error { return d.c.Engine.Forget(context.Background(), 7*24*time.Hour) })
	if row := rowOf(d.look(t, d.next()), n.ID); row != n {
		t.Errorf("a node that has just beaten has the row %+v, want %+v", row, n)
	}
	d.forgetAll(t)
	if look := d.look(t, d.next()); len(look.Nodes) > 0 {
		t.Errorf("after all nodes were forgotten there are %+v", look.Nodes)
	}
	n.Beat++
	if row := rowOf(d.beat(t, d.next(), n), n.ID); row != n {
		t.Errorf("the next beat of a node that was forgotten stored %+v, want %+v", row, n)
	}
}

// look: a look shows the head of its shard, changes nothing in it, and has a clock that does not go back.
func look(t TB, d *directory) {
	n := d.join(t, shardlog.Node{ID: d.node("looks")})
	shard := d.next()
	clock := d.look(t, shard).Clock
	if clock.IsZero() {
		t.Errorf("the look shows no time")
	}
	shows := func(want shardlog.State) {
		t.Helper()
		for _, look := range []shardlog.Look{d.look(t, shard), d.beat(t, shard, n)} {
			if look.State != want || look.Late != "" {
				t.Errorf("the look shows %+v and late %q, the head is %+v", look.State, look.Late, want)
			}
			if look.Clock.Before(clock) {
				t.Errorf("the clock went from %v back to %v", clock, look.Clock)
			}
			clock = look.Clock
		}
		d.headIs(t, shard, want)
	}
	shows(shardlog.State{First: 1})
	w := d.claim(t, shard, "a")
	shows(w.State)
	w.must(t, "1", "2", "3")
	shows(w.State)
	d.remove(t, shard, 2)
	w.State.First = 3
	shows(w.State)
	w = d.claim(t, shard, "b")
	shows(w.State)
	d.claim(t, d.next(), "c") // another shard
	shows(w.State)
}

package shardlogtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// looks is an engine with changed looks, those of beats too.
func looks(change func(o *other, shard int, look *shardlog.Look)) both {
	return changes(func(o *other) {
		o.look = func(ctx context.Context, shard int) (shardlog.Look, error) {
			look, err := o.Log.Look(ctx, shard)
			change(o, shard, &look)
			return look, err
		}
		o.beat = func(ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error) {
			look, err := o.Log.Beat(ctx, shard, n)
			change(o, shard, &look)
			return look, err
		}
	})
}

// beats is an engine with another Beat.
func beats(beat func(l *memlog.Log, ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error)) both {
	return changes(func(o *other) {
		o.beat = func(ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error) {
			return beat(o.Log, ctx, shard, n)
		}
	})
}

// oldest is in the past of each clock.
var oldest = time.Unix(-1, 0)

// clusters is an engine with other names of the cluster. Each process has a function of its own.
func clusters(named func(l *memlog.Log) func() string) both {
	return changes(func(o *other) {
		name := named(o.Log)
		o.cluster = func(context.Context) (string, error) { return name(), nil }
	})
}

// drawn is a name that differs from each before.
func drawn() string {
	draws++
	return fmt.Sprintf("%032x", draws)
}

var draws int

var nodeLiars = []directoryLiar{
	{"has no name for the cluster", "cluster", clusters(func(*memlog.Log) func() string { return func() string { return "" } })},
	{"has a short name for the cluster", "cluster", clusters(func(*memlog.Log) func() string { return func() string { return "holdfast" } })},
	{"draws the name of the cluster at each call", "cluster", clusters(func(*memlog.Log) func() string { return drawn })},
	{"draws the name of the cluster in each process", "cluster", clusters(func(*memlog.Log) func() string {
		name := drawn()
		return func() string { return name }
	})},
	{"names the cluster by its nodes", "cluster", clusters(func(l *memlog.Log) func() string {
		return func() string {
			look, _ := l.Look(context.Background(), 0)
			return fmt.Sprintf("%032x", len(look.Nodes))
		}
	})},
	{"changes the name of the cluster at a claim", "cluster", changes(func(o *other) {
		o.claim = func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
			h, err := o.Log.Claim(ctx, shard, owner, seen)
			if h.Term > 1 {
				o.Log.SetCluster(drawn())
			}
			return h, err
		}
	})},
	{"keeps the first beat of an incarnation", "rows", beats(func(l *memlog.Log, ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error) {
		if n.Incarnation > 0 {
			return l.Look(ctx, shard)
		}
		return l.Beat(ctx, shard, n)
	})},
	{"takes the larger of two beats", "rows", beats(func(l *memlog.Log, ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error) {
		look, _ := l.Look(ctx, shard)
		for _, row := range look.Nodes {
			if row.ID == n.ID && n.Incarnation > 0 {
				n.Beat = max(n.Beat, row.Beat)
			}
		}
		return l.Beat(ctx, shard, n)
	})},
	{"looks before it stores the beat", "rows incarnations", beats(func(l *memlog.Log, ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error) {
		look, _ := l.Look(ctx, shard)
		_, err := l.Beat(ctx, shard, n)
		return look, err
	})},
	{"raises the beat by itself", "rows", beats(func(l *memlog.Log, ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error) {
		n.Beat++
		return l.Beat(ctx, shard, n)
	})},
	{"takes a node without an id", "rows", beats(func(l *memlog.Log, ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error) {
		if n.ID == "" {
			return l.Look(ctx, shard)
		}
		return l.Beat(ctx, shard, n)
	})},
	{"shows no address", "rows", looks(func(_ *other, _ int, look *shardlog.Look) {
		for i := range look.Nodes {
			look.Nodes[i].Addr = ""
		}
	})},
	{"shows no node that drains", "rows", looks(func(_ *other, _ int, look *shardlog.Look) {
		look.Nodes = slices.DeleteFunc(look.Nodes, func(n shardlog.Node) bool { return n.Draining })
	})},
	{"shows the nodes in the order of their beats", "rows", looks(func(_ *other, _ int, look *shardlog.Look) {
		slices.SortStableFunc(look.Nodes, func(a, b shardlog.Node) int { return int(a.Incarnation) - int(b.Incarnation) })
	})},
	{"shows the nodes of a shard", "rows", nodesOfShards()},
	{"numbers the incarnations of each node", "incarnations", changes(numbersNodes)},
	{"lets the older process of an id be", "incarnations", beats(func(l *memlog.Log, ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error) {
		look, err := l.Beat(ctx, shard, n)
		if errors.Is(err, shardlog.ErrFenced) {
			return l.Look(ctx, shard)
		}
		return look, err
	})},
	{"fences a node whose row is gone", "incarnations forget", beats(func(l *memlog.Log, ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error) {
		look, _ := l.Look(ctx, shard)
		if n.Incarnation > 0 && !slices.ContainsFunc(look.Nodes, func(row shardlog.Node) bool { return row.ID == n.ID }) {
			return shardlog.Look{}, shardlog.ErrFenced
		}
		return l.Beat(ctx, shard, n)
	})},
	{"gives incarnations again after a restart", "incarnations", both{crash: func(*memlog.Log) *memlog.Log { return memlog.New() }}},
	{"forgets nothing", "forget", changes(func(o *other) {
		o.forget = func(context.Context, time.Duration) error { return nil }
	})},
	{"forgets nodes of today", "forget", changes(func(o *other) {
		o.forget = func(ctx context.Context, _ time.Duration) error { return o.Log.Forget(ctx, 0) }
	})},
	{"looks at the next shard", "look lost late", looks(func(o *other, shard int, look *shardlog.Look) {
		next, _ := o.Log.Look(context.Background(), shard+1)
		look.State, look.Late = next.State, next.Late
	})},
	{"begins a term by a look", "look", looks(func(o *other, shard int, look *shardlog.Look) {
		_, _ = o.Log.Claim(context.Background(), shard, "look", look.State.Term)
	})},
	{"shows no owner", "look", looks(func(_ *other, _ int, look *shardlog.Look) { look.State.Owner = "" })},
	{"shows no time", "look", looks(func(_ *other, _ int, look *shardlog.Look) { look.Clock = time.Time{} })},
	{"has a clock that goes back", "look", looks(func(_ *other, _ int, look *shardlog.Look) {
		oldest = oldest.Add(-1)
		look.Clock = oldest
	})},
}

// nodesOfShards shows a node in looks at the shard of its last beat alone.
func nodesOfShards() both {
	at := make(map[string]int)
	return changes(func(o *other) {
		o.beat = func(ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error) {
			at[n.ID] = shard
			return o.Log.Beat(ctx, shard, n)
		}
		o.look = func(ctx context.Context, shard int) (shardlog.Look, error) {
			look, err := o.Log.Look(ctx, shard)
			look.Nodes = slices.DeleteFunc(look.Nodes, func(n shardlog.Node) bool { return at[n.ID] != shard })
			return look, err
		}
	})
}

// numbersNodes gives each node incarnations from 1 on.
func numbersNodes(o *other) {
	given := make(map[string]uint64)
	o.beat = func(ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error) {
		if n.Incarnation == 0 {
			given[n.ID]++
			n.Incarnation = given[n.ID]
		}
		return o.Log.Beat(ctx, shard, n)
	}
}

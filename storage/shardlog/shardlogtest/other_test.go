package shardlogtest_test

import (
	"context"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// other is the log in memory with other functions in the place of some methods.
type other struct {
	*memlog.Log
	all func(ctx context.Context, call func(context.Context) error) error // around each call but those of shardlog.Log

	cluster    func(ctx context.Context) (string, error)
	claim      func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error)
	truncate   func(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error
	beat       func(ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error)
	look       func(ctx context.Context, shard int) (shardlog.Look, error)
	snapshots  func(ctx context.Context, shard int) ([]shardlog.Snapshot, error)
	recover    func(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (shardlog.State, error)
	list       func(ctx context.Context, shard int) ([]shardlog.Blob, error)
	forget     func(ctx context.Context, age time.Duration) error
	begin      func(ctx context.Context, shard int, base shardlog.Snapshot) error
	register   func(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error
	quarantine func(ctx context.Context, shard int, where string) error
	noteLate   func(ctx context.Context, shard int, where string) error
	put        func(ctx context.Context, shard int, name string, r io.Reader) error
	get        func(ctx context.Context, shard int, name string, f func([]byte) error) error
	collect    func(ctx context.Context, shard int, term uint64) error
}

// changes is an engine with other methods.
func changes(change func(*other)) both {
	return both{front: func(l *memlog.Log) shardlogtest.Engine {
		o := &other{
			Log: l, cluster: l.Cluster, claim: l.Claim, truncate: l.Truncate,
			beat: l.Beat, look: l.Look, snapshots: l.Snapshots, recover: l.Recover, list: l.List, forget: l.Forget, begin: l.Begin, register: l.Register, quarantine: l.Quarantine, noteLate: l.NoteLate, put: l.Put, get: l.Get, collect: l.Collect,
		}
		o.all = func(ctx context.Context, call func(context.Context) error) error { return call(ctx) }
		change(o)
		return o
	}}
}

// answered makes a call that has an answer.
func answered[T any](ctx context.Context, o *other, call func(context.Context) (T, error)) (answer T, err error) {
	err = o.all(ctx, func(ctx context.Context) error {
		answer, err = call(ctx)
		return err
	})
	return answer, err
}

func (o *other) Cluster(ctx context.Context) (string, error) { return answered(ctx, o, o.cluster) }

func (o *other) Claim(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
	return o.claim(ctx, shard, owner, seen)
}

func (o *other) Truncate(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error {
	return o.truncate(ctx, shard, term, upTo)
}

func (o *other) Beat(ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error) {
	return answered(ctx, o, func(ctx context.Context) (shardlog.Look, error) { return o.beat(ctx, shard, n) })
}

func (o *other) Look(ctx context.Context, shard int) (shardlog.Look, error) {
	return answered(ctx, o, func(ctx context.Context) (shardlog.Look, error) { return o.look(ctx, shard) })
}

func (o *other) Snapshots(ctx context.Context, shard int) ([]shardlog.Snapshot, error) {
	return answered(ctx, o, func(ctx context.Context) ([]shardlog.Snapshot, error) { return o.snapshots(ctx, shard) })
}

func (o *other) Recover(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (shardlog.State, error) {
	return answered(ctx, o, func(ctx context.Context) (shardlog.State, error) { return o.recover(ctx, shard, term, before, records) })
}

func (o *other) List(ctx context.Context, shard int) ([]shardlog.Blob, error) {
	return answered(ctx, o, func(ctx context.Context) ([]shardlog.Blob, error) { return o.list(ctx, shard) })
}

func (o *other) Forget(ctx context.Context, age time.Duration) error {
	return o.all(ctx, func(ctx context.Context) error { return o.forget(ctx, age) })
}

func (o *other) Begin(ctx context.Context, shard int, base shardlog.Snapshot) error {
	return o.all(ctx, func(ctx context.Context) error { return o.begin(ctx, shard, base) })
}

func (o *other) Register(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
	return o.all(ctx, func(ctx context.Context) error { return o.register(ctx, shard, term, s) })
}

func (o *other) Quarantine(ctx context.Context, shard int, where string) error {
	return o.all(ctx, func(ctx context.Context) error { return o.quarantine(ctx, shard, where) })
}

func (o *other) NoteLate(ctx context.Context, shard int, where string) error {
	return o.all(ctx, func(ctx context.Context) error { return o.noteLate(ctx, shard, where) })
}

func (o *other) Put(ctx context.Context, shard int, name string, r io.Reader) error {
	return o.all(ctx, func(ctx context.Context) error { return o.put(ctx, shard, name, r) })
}

func (o *other) Get(ctx context.Context, shard int, name string, f func([]byte) error) error {
	return o.all(ctx, func(ctx context.Context) error { return o.get(ctx, shard, name, f) })
}

func (o *other) Collect(ctx context.Context, shard int, term uint64) error {
	return o.all(ctx, func(ctx context.Context) error { return o.collect(ctx, shard, term) })
}

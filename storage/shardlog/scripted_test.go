package shardlog_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

var errCut = errors.New("the connection is cut")

// scripted is a log with answers that a test changes. Each function replaces a call, which it may make with do. The functions are set
// while no call is under way.
type scripted struct {
	shardlog.Log
	onHead   func(do func() (shardlog.State, error)) (shardlog.State, error)
	onClaim  func(do func() (shardlog.State, error)) (shardlog.State, error)
	onAppend func(r shardlog.Record, do func() error) error
	onRead   func(from shardlog.Position, f func(shardlog.Record) error, do func(func(shardlog.Record) error) error) error

	heads, appends, reads atomic.Int64
}

func (l *scripted) Head(ctx context.Context, shard int) (shardlog.State, error) {
	l.heads.Add(1)
	do := func() (shardlog.State, error) { return l.Log.Head(ctx, shard) }
	if l.onHead != nil {
		return l.onHead(do)
	}
	return do()
}

func (l *scripted) Claim(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
	do := func() (shardlog.State, error) { return l.Log.Claim(ctx, shard, owner, seen) }
	if l.onClaim != nil {
		return l.onClaim(do)
	}
	return do()
}

func (l *scripted) Append(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
	l.appends.Add(1)
	do := func() error { return l.Log.Append(ctx, shard, before, r) }
	if l.onAppend != nil {
		return l.onAppend(r, do)
	}
	return do()
}

func (l *scripted) Read(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
	l.reads.Add(1)
	do := func(f func(shardlog.Record) error) error { return l.Log.Read(ctx, shard, from, f) }
	if l.onRead != nil {
		return l.onRead(from, f, do)
	}
	return do(f)
}

// options are those of an engine over a log.
func options(log shardlog.Log, owner string) shardlog.Options {
	return shardlog.Options{Log: log, Owner: owner}
}

// start opens an engine over a view in memory.
func start(t testing.TB, o shardlog.Options, view engine.Engine) *shardlog.Engine {
	t.Helper()
	e, err := shardlog.Open(o, view)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// put is a batch that sets a key.
func put(key, value string) []byte {
	var b storage.Batch
	b.Set([]byte(key), []byte(value))
	return b.Repr()
}

// apply applies a batch that sets a key.
func apply(t testing.TB, e engine.Engine, key, value string) {
	t.Helper()
	if err := e.Apply(put(key, value)); err != nil {
		t.Fatal(err)
	}
}

// store applies batches that set keys to a value, as one round, and syncs.
func store(t testing.TB, e engine.Engine, value string, keys ...string) {
	t.Helper()
	for _, k := range keys {
		apply(t, e, k, value)
	}
	if err := e.Sync(); err != nil {
		t.Fatal(err)
	}
}

// closeEngine ends an engine in order.
func closeEngine(t testing.TB, e engine.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// rows are the rows of an engine but for those of the view alone.
func rows(t testing.TB, e engine.Engine) map[string]string {
	t.Helper()
	it, err := e.NewIter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			t.Fatal(err)
		}
		found[string(it.Key())] = string(v)
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		t.Fatal(err)
	}
	delete(found, string(shardlog.PositionKey))
	delete(found, string(shardlog.ClusterKey))
	return found
}

// holds compares the rows of an engine with those that it must have.
func holds(t testing.TB, about string, e engine.Engine, want map[string]string) {
	t.Helper()
	if got := rows(t, e); !maps.Equal(got, want) {
		t.Errorf("%s: the rows are %.300q, want %.300q", about, got, want)
	}
}

// replayed is an empty view that has all records of a log.
func replayed(t testing.TB, log shardlog.Log) *memstore.Store {
	t.Helper()
	view := memstore.New()
	for _, r := range shardlogtest.Records(t, log, 0) {
		if err := shardlog.Batches(r.Payload, view.Apply); err != nil {
			t.Fatal(err)
		}
	}
	return view
}

// batches is how many batches a record has.
func batches(t testing.TB, r shardlog.Record) (n int) {
	t.Helper()
	if err := shardlog.Batches(r.Payload, func([]byte) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// is fails the test unless err is each of the wanted errors, and none of those that are not.
func is(t testing.TB, about string, err error, wanted ...error) {
	t.Helper()
	for _, known := range []error{shardlog.ErrFenced, shardlog.ErrUnknown, shardlog.ErrHole, shardlog.ErrTruncated, shardlog.ErrRefused, storage.ErrAckedDataLost} {
		want := false
		for _, w := range wanted {
			want = want || w == known
		}
		if errors.Is(err, known) != want {
			t.Errorf("%s: %v, which is %q: %v, want %v", about, err, known, !want, want)
		}
	}
	if err == nil {
		t.Errorf("%s: no error", about)
	}
}

// logOf is a log with n records, and its last owner, which is gone. Each record sets the key of its number.
func logOf(t testing.TB, n int) *memlog.Log {
	t.Helper()
	log := memlog.New()
	e := start(t, options(log, "first"), memstore.New())
	for i := range n {
		store(t, e, "first", fmt.Sprint(i+1))
	}
	closeEngine(t, e)
	return log
}

// contains reports whether the text of an error has a part.
func contains(err error, part string) bool { return err != nil && strings.Contains(err.Error(), part) }

package shardlogtest_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// The log in memory keeps all promises, and so does each log that is allowed to behave as these.
func TestHonest(t *testing.T) {
	for name, e := range map[string]engine{
		"a connection that is cut":    {links: true},
		"reads of two records":        {front: pages},
		"many outcomes unknown":       {front: unsure},
		"calls that let others first": {front: polite},
	} {
		t.Run(name, func(t *testing.T) { shardlogtest.Run(t, e.config()) })
	}
}

// A Config without a field that the suite needs fails each case.
func TestConfigNeedsItsFields(t *testing.T) {
	whole := engine{}.config()
	for name, c := range map[string]shardlogtest.Config{
		"Log":     {Restart: whole.Restart, Base: whole.Base, Lose: whole.Lose},
		"Restart": {Log: whole.Log, Base: whole.Base, Lose: whole.Lose},
		"Base":    {Log: whole.Log, Restart: whole.Restart, Lose: whole.Lose},
		"Lose":    {Log: whole.Log, Restart: whole.Restart, Base: whole.Base},
	} {
		for _, k := range shardlogtest.Cases(c) {
			if found := shardlogtest.Failures(k); len(found) != 1 {
				t.Errorf("without %s case %s has the failures %q", name, k.Name, found)
			}
		}
	}
}

// pages ends each read after two records.
func pages(l shardlog.Log) shardlog.Log {
	return &changed{Log: l, read: func(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
		n, err := 0, error(nil)
		end := l.Read(ctx, shard, from, func(r shardlog.Record) error {
			if n++; n > 2 {
				return errPage
			}
			err = f(r)
			return err
		})
		if err == nil && n > 2 {
			return nil
		}
		return end
	}}
}

var errPage = errCut

// unsure leaves the outcome of two in five calls unknown: one was done, one was not.
func unsure(l shardlog.Log) shardlog.Log {
	var calls atomic.Uint64
	sure := func(call func() error) error {
		switch calls.Add(1) % 5 {
		case 0:
			return errCut
		case 1:
			_ = call()
			return errCut
		}
		return call()
	}
	return &changed{
		Log: l,
		head: func(ctx context.Context, shard int) (h shardlog.State, err error) {
			err = sure(func() error { h, err = l.Head(ctx, shard); return err })
			return h, err
		},
		claim: func(ctx context.Context, shard int, owner string, seen uint64) (h shardlog.State, err error) {
			err = sure(func() error { h, err = l.Claim(ctx, shard, owner, seen); return err })
			return h, err
		},
		append: func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			return sure(func() error { return l.Append(ctx, shard, before, r) })
		},
		read: func(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
			if calls.Add(1)%5 == 0 {
				return errCut
			}
			return l.Read(ctx, shard, from, f)
		},
		truncate: func(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error {
			return sure(func() error { return l.Truncate(ctx, shard, term, upTo) })
		},
	}
}

// polite lets other goroutines run before and after each call.
func polite(l shardlog.Log) shardlog.Log {
	yield := func() func() {
		runtime.Gosched()
		return runtime.Gosched
	}
	return &changed{
		Log: l,
		claim: func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
			defer yield()()
			return l.Claim(ctx, shard, owner, seen)
		},
		append: func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			defer yield()()
			return l.Append(ctx, shard, before, r)
		},
	}
}

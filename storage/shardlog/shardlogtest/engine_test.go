package shardlogtest_test

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// engine is the log in memory, with changes in front of it and of the hooks of Config. Its zero value changes nothing.
type engine struct {
	front func(shardlog.Log) shardlog.Log // of the log, and again of the log that comes back
	crash func(*memlog.Log) *memlog.Log   // in place of Crash
	lose  func(*memlog.Log, int, string)  // in place of SetLost
	links bool                            // Config.Cut cuts a link behind front; otherwise the suite cuts before it
	log   *memlog.Log                     // the one that is up
	cuts  chan shardlogtest.Moment        // of the link
}

// config is a new engine as the suite sees it.
func (e engine) config() shardlogtest.Config {
	e.log = memlog.New()
	if e.front == nil {
		e.front = func(l shardlog.Log) shardlog.Log { return l }
	}
	if e.crash == nil {
		e.crash = (*memlog.Log).Crash
	}
	if e.lose == nil {
		e.lose = (*memlog.Log).SetLost
	}
	e.cuts = make(chan shardlogtest.Moment, 1)
	c := shardlogtest.Config{
		Log: e.up(),
		Restart: func() shardlog.Log {
			e.log = e.crash(e.log)
			return e.up()
		},
		Base: func(shard int, last shardlog.Position, chain uint64) error {
			e.log.SetBase(shard, last, chain)
			return nil
		},
		Lose: func(shard int, where string) error {
			e.lose(e.log, shard, where)
			return nil
		},
	}
	if e.links {
		c.Cut = func(m shardlogtest.Moment) { e.cuts <- m }
	}
	return c
}

// up connects to the log.
func (e *engine) up() shardlog.Log { return e.front(&link{e.log, e.cuts}) }

// link is a connection to a log, which a test can cut.
type link struct {
	shardlog.Log
	cuts chan shardlogtest.Moment // of the next Append or Claim
}

var errCut = errors.New("connection lost")

func (l *link) Append(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
	return l.do(func() error { return l.Log.Append(ctx, shard, before, r) })
}

func (l *link) Claim(ctx context.Context, shard int, owner string, seen uint64) (h shardlog.State, err error) {
	err = l.do(func() error {
		h, err = l.Log.Claim(ctx, shard, owner, seen)
		return err
	})
	return h, err
}

func (l *link) do(call func() error) error {
	select {
	case m := <-l.cuts:
		if m == shardlogtest.After {
			_ = call() // its answer is lost
		}
		return errCut
	default:
		return call()
	}
}

// changed is a log with other methods in the place of some. A nil one is that of Log.
type changed struct {
	shardlog.Log
	head     func(ctx context.Context, shard int) (shardlog.State, error)
	claim    func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error)
	append   func(ctx context.Context, shard int, before uint64, r shardlog.Record) error
	read     func(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error
	truncate func(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error
}

func (c *changed) Head(ctx context.Context, shard int) (shardlog.State, error) {
	if c.head != nil {
		return c.head(ctx, shard)
	}
	return c.Log.Head(ctx, shard)
}

func (c *changed) Claim(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
	if c.claim != nil {
		return c.claim(ctx, shard, owner, seen)
	}
	return c.Log.Claim(ctx, shard, owner, seen)
}

func (c *changed) Append(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
	if c.append != nil {
		return c.append(ctx, shard, before, r)
	}
	return c.Log.Append(ctx, shard, before, r)
}

func (c *changed) Read(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
	if c.read != nil {
		return c.read(ctx, shard, from, f)
	}
	return c.Log.Read(ctx, shard, from, f)
}

func (c *changed) Truncate(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error {
	if c.truncate != nil {
		return c.truncate(ctx, shard, term, upTo)
	}
	return c.Log.Truncate(ctx, shard, term, upTo)
}

// headOf is the head of a log that answers each call.
func headOf(l shardlog.Log, shard int) shardlog.State {
	h, err := l.Head(context.Background(), shard)
	if err != nil {
		return shardlog.State{} // after a crash
	}
	return h
}

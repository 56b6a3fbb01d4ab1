package cluster_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// link is the way of one node to the log, which a test cuts, delays and holds.
type link struct {
	cluster.Log

	mu     sync.Mutex    // guards the fields below
	cut    direction     // no call gets through
	opened chan struct{} // closed when cut changes
	dead   bool          // the process has died: no call is ever made or answered
	delay  time.Duration // of each request, and of each answer
	refuse bool          // appends are refused
	hangs  bool          // appends wait until their contexts end
	lose   float64       // the share of appends and claims that land and are not answered
	random *rand.Rand
}

// direction says which way of a link is cut.
type direction int

const (
	whole    direction = iota
	requests           // a call waits before it lands, as that of a process that is stopped
	answers            // a call lands, and its caller waits for the answer
)

var errCut = errors.New("the link is cut")

func newLink(log cluster.Log, seed uint64) *link {
	return &link{Log: log, opened: make(chan struct{}), random: rand.New(rand.NewPCG(seed, 1))}
}

// set cuts the link, or makes it whole again.
func (l *link) set(d direction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = d
	close(l.opened)
	l.opened = make(chan struct{})
}

// kill ends all calls for ever.
func (l *link) kill() {
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	l.set(whole)
}

// wait returns nil when the link lets a request or an answer through. A call waits until its context ends.
func (l *link) wait(ctx context.Context, way direction) error {
	for {
		l.mu.Lock()
		cut, dead, opened, delay := l.cut, l.dead, l.opened, l.delay
		l.mu.Unlock()
		switch {
		case dead:
			return errCut
		case cut != way && delay == 0:
			return ctx.Err()
		case cut != way:
			select {
			case <-time.After(delay):
				return ctx.Err()
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pass makes a call over the link.
func (l *link) pass(ctx context.Context, call func(context.Context) error) error {
	if err := l.wait(ctx, requests); err != nil {
		return err
	}
	if err := call(ctx); err != nil {
		return err
	}
	return l.wait(ctx, answers)
}

// lossy is pass for a call that changes the log. Its answer may be lost after it has landed.
func (l *link) lossy(ctx context.Context, call func(context.Context) error) error {
	err := l.pass(ctx, call)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.lose > 0 && l.random.Float64() < l.lose {
		return errCut
	}
	return err
}

func (l *link) Cluster(ctx context.Context) (name string, err error) {
	err = l.pass(ctx, func(ctx context.Context) (err error) { name, err = l.Log.Cluster(ctx); return err })
	return name, err
}

func (l *link) Head(ctx context.Context, shard int) (s shardlog.State, err error) {
	err = l.pass(ctx, func(ctx context.Context) (err error) { s, err = l.Log.Head(ctx, shard); return err })
	return s, err
}

func (l *link) Claim(ctx context.Context, shard int, owner string, seen uint64) (s shardlog.State, err error) {
	err = l.lossy(ctx, func(ctx context.Context) (err error) { s, err = l.Log.Claim(ctx, shard, owner, seen); return err })
	return s, err
}

// hang makes appends wait.
func (l *link) hang(hangs bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hangs = hangs
}

func (l *link) Append(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
	l.mu.Lock()
	hangs, refuse := l.hangs, l.refuse
	l.mu.Unlock()
	if refuse {
		return shardlog.ErrRefused
	}
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return l.lossy(ctx, func(ctx context.Context) error { return l.Log.Append(ctx, shard, before, r) })
}

func (l *link) Read(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
	return l.pass(ctx, func(ctx context.Context) error { return l.Log.Read(ctx, shard, from, f) })
}

func (l *link) Truncate(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error {
	return l.pass(ctx, func(ctx context.Context) error { return l.Log.Truncate(ctx, shard, term, upTo) })
}

func (l *link) Beat(ctx context.Context, shard int, n shardlog.Node) (look shardlog.Look, err error) {
	err = l.pass(ctx, func(ctx context.Context) (err error) { look, err = l.Log.Beat(ctx, shard, n); return err })
	return look, err
}

func (l *link) Look(ctx context.Context, shard int) (look shardlog.Look, err error) {
	err = l.pass(ctx, func(ctx context.Context) (err error) { look, err = l.Log.Look(ctx, shard); return err })
	return look, err
}

func (l *link) Forget(ctx context.Context, age time.Duration) error {
	return l.pass(ctx, func(ctx context.Context) error { return l.Log.Forget(ctx, age) })
}

func (l *link) Register(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
	return l.pass(ctx, func(ctx context.Context) error { return l.Log.Register(ctx, shard, term, s) })
}

func (l *link) Put(ctx context.Context, shard int, name string, r io.Reader) error {
	return l.pass(ctx, func(ctx context.Context) error { return l.Log.Put(ctx, shard, name, r) })
}

// flaky delays calls, and loses a share of the answers to appends and claims.
func (l *link) flaky(delay time.Duration, lose float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay, l.lose = delay, lose
}

func (l *link) Snapshots(ctx context.Context, shard int) (all []shardlog.Snapshot, err error) {
	err = l.pass(ctx, func(ctx context.Context) (err error) { all, err = l.Log.Snapshots(ctx, shard); return err })
	return all, err
}

func (l *link) Quarantine(ctx context.Context, shard int, where string) error {
	return l.pass(ctx, func(ctx context.Context) error { return l.Log.Quarantine(ctx, shard, where) })
}

func (l *link) Get(ctx context.Context, shard int, name string, f func([]byte) error) error {
	return l.pass(ctx, func(ctx context.Context) error { return l.Log.Get(ctx, shard, name, f) })
}

func (l *link) List(ctx context.Context, shard int) (all []shardlog.Blob, err error) {
	err = l.pass(ctx, func(ctx context.Context) (err error) { all, err = l.Log.List(ctx, shard); return err })
	return all, err
}

func (l *link) Collect(ctx context.Context, shard int, term uint64) error {
	return l.pass(ctx, func(ctx context.Context) error { return l.Log.Collect(ctx, shard, term) })
}

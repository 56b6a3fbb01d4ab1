package shardlogtest_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

type appending = func(ctx context.Context, shard int, before uint64, r shardlog.Record) error

// appends is an engine with another Append.
func appends(other func(l shardlog.Log) appending) engine {
	return engine{front: func(l shardlog.Log) shardlog.Log { return &changed{Log: l, append: other(l)} }}
}

// cuttable has the connection behind the liar cut.
func cuttable(e engine) engine {
	e.links = true
	return e
}

var appendLiars = []liar{
	{"acknowledges without storing", "order writers durable", appends(func(l shardlog.Log) appending {
		var n atomic.Uint64
		return func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			if n.Add(1)%7 == 0 {
				return nil
			}
			return l.Append(ctx, shard, before, r)
		}
	})},
	{"ignores the term", "unclaimed fence pause two-terms quarantine", appends(func(l shardlog.Log) appending {
		return func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			r.Term = headOf(l, shard).Term
			return l.Append(ctx, shard, before, r)
		}
	})},
	{"ignores the chain", "holes base", appends(func(l shardlog.Log) appending {
		return func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			if h := headOf(l, shard); h.Last+1 == r.At {
				before, r.Chain = h.Chain, shardlog.Next(h.Chain, r.Payload)
			}
			return l.Append(ctx, shard, before, r)
		}
	})},
	{"ignores the position", "holes", appends(func(l shardlog.Log) appending {
		return func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			if h := headOf(l, shard); h.Chain == before {
				r.At = h.Last + 1
			}
			return l.Append(ctx, shard, before, r)
		}
	})},
	{"refuses a repeat", "repeat cut-append durable", appends(func(l shardlog.Log) appending {
		return func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			if headOf(l, shard).Last == r.At {
				return shardlog.ErrFenced
			}
			return l.Append(ctx, shard, before, r)
		}
	})},
	{"stores a repeat again", "repeat cut-append", appends(func(l shardlog.Log) appending {
		return func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			if h := headOf(l, shard); h.Last == r.At && h.Chain == r.Chain {
				before, r.At, r.Chain = r.Chain, r.At+1, shardlog.Next(r.Chain, r.Payload)
			}
			return l.Append(ctx, shard, before, r)
		}
	})},
	{"takes each record for a repeat that it has", "repeat fence", appends(func(l shardlog.Log) appending {
		return func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			err := l.Append(ctx, shard, before, r)
			_ = l.Read(ctx, shard, r.At, func(has shardlog.Record) error {
				if has.At == r.At && has.Chain == r.Chain {
					err = nil
				}
				return errPage
			})
			return err
		}
	})},
	{"takes a record of another term for a repeat", "pause", appends(func(l shardlog.Log) appending {
		return func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			if h := headOf(l, shard); h.Term == r.Term && h.Last == r.At && h.Chain == r.Chain {
				return nil // the term of the head and not that of the record
			}
			return l.Append(ctx, shard, before, r)
		}
	})},
	{"calls a stored record fenced", "order", appends(func(l shardlog.Log) appending {
		return func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			if err := l.Append(ctx, shard, before, r); err != nil || r.At%5 > 0 {
				return err
			}
			return shardlog.ErrFenced
		}
	})},
	{"calls unknown stored", "cut-append", cuttable(appends(func(l shardlog.Log) appending {
		return func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			err := l.Append(ctx, shard, before, r)
			if errors.Is(err, errCut) {
				return nil
			}
			return err
		}
	}))},
	{"calls unknown fenced", "cut-append", cuttable(appends(func(l shardlog.Log) appending {
		return func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			err := l.Append(ctx, shard, before, r)
			if errors.Is(err, errCut) {
				return shardlog.ErrFenced
			}
			return err
		}
	}))},
	{"acknowledges the loser of a place", "writers fence two-terms", appends(func(l shardlog.Log) appending {
		return func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			err := l.Append(ctx, shard, before, r)
			for n := 0; err != nil && n < 20; n++ { // until the winner has appended
				if headOf(l, shard).Last == r.At {
					return nil
				}
				runtime.Gosched()
			}
			return err
		}
	})},
	{"answers by shard alone", "two-terms", appends(func(l shardlog.Log) appending {
		return batching(l, func(a, b *pending) bool { return a.shard == b.shard })
	})},
	{"answers by shard and position", "two-terms", appends(func(l shardlog.Log) appending {
		return batching(l, func(a, b *pending) bool { return a.shard == b.shard && a.r.At == b.r.At })
	})},
	{"answers by shard, position and chain", "two-terms", appends(func(l shardlog.Log) appending {
		return batching(l, func(a, b *pending) bool { return a.shard == b.shard && a.r.At == b.r.At && a.r.Chain == b.r.Chain })
	})},
	{"keeps the payload", "payloads", engine{front: keepsPayload}},
	{"refuses a record without bytes", "payloads", appends(func(l shardlog.Log) appending {
		return func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			if len(r.Payload) == 0 {
				return shardlog.ErrRefused
			}
			return l.Append(ctx, shard, before, r)
		}
	})},
	{"refuses a large record", "payloads", appends(func(l shardlog.Log) appending {
		return func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			if len(r.Payload) > 8<<20 {
				return shardlog.ErrRefused
			}
			return l.Append(ctx, shard, before, r)
		}
	})},
}

// pending is an append that waits for its batch.
type pending struct {
	shard  int
	before uint64
	r      shardlog.Record
	err    error // of its own
	told   error // its answer
	done   chan bool
}

// batching stores the appends that wait at the same time as one batch. An append is told nil if one that was stored is the same by a
// rule that is too weak.
func batching(l shardlog.Log, same func(a, b *pending) bool) appending {
	var mu, engine sync.Mutex
	var waiting []*pending
	company := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(waiting) != 1
	}
	run := func() {
		engine.Lock()
		defer engine.Unlock()
		for n := 0; n < 1000 && !company(); n++ {
			runtime.Gosched()
		}
		mu.Lock()
		batch := waiting
		waiting = nil
		mu.Unlock()
		for _, p := range batch {
			p.err = l.Append(context.Background(), p.shard, p.before, p.r)
		}
		for _, p := range batch {
			if slices.ContainsFunc(batch, func(stored *pending) bool { return stored.err == nil && same(p, stored) }) {
				p.told = nil
			} else {
				p.told = p.err
			}
		}
		for _, p := range batch {
			close(p.done)
		}
	}
	return func(_ context.Context, shard int, before uint64, r shardlog.Record) error {
		p := &pending{shard: shard, before: before, r: r, done: make(chan bool)}
		mu.Lock()
		waiting = append(waiting, p)
		mu.Unlock()
		run()
		<-p.done
		return p.told
	}
}

// keepsPayload gives the bytes that the caller's payload has at the time of the read.
func keepsPayload(l shardlog.Log) shardlog.Log {
	var mu sync.Mutex
	kept := make(map[shardlog.Position][]byte)
	return &changed{
		Log: l,
		append: func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
			mu.Lock()
			kept[r.At] = r.Payload
			mu.Unlock()
			return l.Append(ctx, shard, before, r)
		},
		read: func(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
			return l.Read(ctx, shard, from, func(r shardlog.Record) error {
				mu.Lock()
				r.Payload = kept[r.At]
				mu.Unlock()
				return f(r)
			})
		},
	}
}

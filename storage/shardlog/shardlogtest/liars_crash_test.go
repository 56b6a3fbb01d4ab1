package shardlogtest_test

import (
	"context"
	"runtime"
	"sync"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// used is how many shards a case takes at most.
const used = 16

var crashLiars = []liar{
	{"forgets all at a restart", "durable durable-states durable-beside", engine{crash: func(*memlog.Log) *memlog.Log { return memlog.New() }}},
	{"forgets the newest record at a restart", "durable", engine{crash: func(l *memlog.Log) *memlog.Log {
		for shard := range used {
			if h := headOf(l, shard); h.Last >= h.First {
				l.Rewind(shard, h.Last-1)
			}
		}
		return l.Crash()
	}}},
	{"forgets the newest claim at a restart", "durable durable-states", engine{crash: func(l *memlog.Log) *memlog.Log {
		back := memlog.New()
		for shard := range used {
			copyRecords(back, l, shard)
		}
		return back
	}}},
	{"forgets a truncation at a restart", "durable-states", engine{front: forgetsTruncation}},
	{"forgets a quarantine at a restart", "durable-states", forgetsLost()},
	{"shows a head that is not durable", "durable-beside", undurable()},
}

// copyRecords makes the log of a shard again from its records, with the claims that they need.
func copyRecords(to, from *memlog.Log, shard int) {
	ctx := context.Background()
	before := uint64(0)
	_ = from.Read(ctx, shard, 1, func(r shardlog.Record) error {
		for h := headOf(to, shard); h.Term < r.Term; h.Term++ {
			_, _ = to.Claim(ctx, shard, "of the copy", h.Term)
		}
		err := to.Append(ctx, shard, before, r)
		before = r.Chain
		return err
	})
}

// forgetsTruncation has truncations in memory. The log that comes back has none.
func forgetsTruncation(l shardlog.Log) shardlog.Log {
	var mu sync.Mutex
	first := make(map[int]shardlog.Position)
	return &changed{
		Log: l,
		head: func(ctx context.Context, shard int) (shardlog.State, error) {
			h, err := l.Head(ctx, shard)
			mu.Lock()
			defer mu.Unlock()
			h.First = max(h.First, first[shard])
			return h, err
		},
		truncate: func(_ context.Context, shard int, term uint64, upTo shardlog.Position) error {
			mu.Lock()
			defer mu.Unlock()
			first[shard] = upTo + 1
			return nil
		},
	}
}

// forgetsLost has a quarantine in memory.
func forgetsLost() engine {
	e := unfenced()
	lose := e.lose
	lost := make(map[int]bool)
	e.lose = func(l *memlog.Log, shard int, where string) {
		lose(l, shard, where)
		lost[shard] = true
	}
	e.crash = func(l *memlog.Log) *memlog.Log {
		for shard := range lost {
			lose(l, shard, "")
		}
		return l.Crash()
	}
	return e
}

// undurable makes each record durable a while after a head shows it, and then acknowledges it.
func undurable() engine {
	var mu sync.Mutex
	durable := make(map[int]shardlog.Position)
	return engine{
		crash: func(l *memlog.Log) *memlog.Log {
			mu.Lock()
			defer mu.Unlock()
			for shard, last := range durable {
				l.Rewind(shard, last)
			}
			clear(durable)
			return l.Crash()
		},
		front: func(l shardlog.Log) shardlog.Log {
			return &changed{
				Log: l,
				append: func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
					if err := l.Append(ctx, shard, before, r); err != nil {
						return err
					}
					for range 200 { // most heads and crashes come here
						runtime.Gosched()
					}
					mu.Lock()
					defer mu.Unlock()
					durable[shard] = r.At
					return nil
				},
			}
		},
	}
}

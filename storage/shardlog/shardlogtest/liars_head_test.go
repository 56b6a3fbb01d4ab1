package shardlogtest_test

import (
	"context"
	"errors"
	"sync"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// heads is an engine with a Head and a Claim that return other states.
func heads(other func(h *shardlog.State)) engine {
	return engine{front: func(l shardlog.Log) shardlog.Log {
		return &changed{
			Log: l,
			head: func(ctx context.Context, shard int) (shardlog.State, error) {
				h, err := l.Head(ctx, shard)
				other(&h)
				return h, err
			},
			claim: func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
				h, err := l.Claim(ctx, shard, owner, seen)
				other(&h)
				return h, err
			},
		}
	}}
}

// truncates is an engine with another Truncate.
func truncates(other func(l shardlog.Log) func(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error) engine {
	return engine{front: func(l shardlog.Log) shardlog.Log { return &changed{Log: l, truncate: other(l)} }}
}

var headLiars = []liar{
	{"shows the head before the newest record", "order", engine{front: late}},
	{"has record 0 first", "unclaimed", heads(func(h *shardlog.State) {
		if h.Last == 0 {
			h.First = 0
		}
	})},
	{"has a signed chain", "base", heads(func(h *shardlog.State) { h.Chain &= 1<<63 - 1 })},
	{"forgets the chain with the last record", "truncate base", heads(func(h *shardlog.State) {
		if h.First > h.Last {
			h.Chain = 0
		}
	})},
	{"removes nothing", "truncate read-beside", truncates(func(l shardlog.Log) func(context.Context, int, uint64, shardlog.Position) error {
		return func(context.Context, int, uint64, shardlog.Position) error { return nil }
	})},
	{"removes one record too many", "truncate", truncates(func(l shardlog.Log) func(context.Context, int, uint64, shardlog.Position) error {
		return func(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error {
			return l.Truncate(ctx, shard, term, upTo+1)
		}
	})},
	{"refuses to remove a record again", "truncate", truncates(func(l shardlog.Log) func(context.Context, int, uint64, shardlog.Position) error {
		return func(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error {
			if headOf(l, shard).First > upTo {
				return shardlog.ErrTruncated
			}
			return l.Truncate(ctx, shard, term, upTo)
		}
	})},
	{"begins behind the end", "truncate", engine{front: behind}},
	{"ends its term with a truncation", "truncate", truncates(func(l shardlog.Log) func(context.Context, int, uint64, shardlog.Position) error {
		return func(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error {
			if h := headOf(l, shard); h.Term > 0 {
				_, _ = l.Claim(ctx, shard, h.Owner, h.Term)
				term++
			}
			return l.Truncate(ctx, shard, term, upTo)
		}
	})},
	{"truncates for a replaced owner", "truncate-refused", truncates(func(l shardlog.Log) func(context.Context, int, uint64, shardlog.Position) error {
		return func(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error {
			if h := headOf(l, shard); h.Lost == "" && term > 0 && term < h.Term {
				term = h.Term
			}
			return l.Truncate(ctx, shard, term, upTo)
		}
	})},
	{"truncates before a claim", "truncate-refused", truncates(func(l shardlog.Log) func(context.Context, int, uint64, shardlog.Position) error {
		return func(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error {
			if term == 0 && headOf(l, shard).Term == 0 {
				return nil
			}
			return l.Truncate(ctx, shard, term, upTo)
		}
	})},
	{"has no term of its own for a quarantine", "quarantine", unfenced()},
	{"claims in quarantine", "quarantine", engine{front: claimsLost}},
	{"ignores the end of a context", "ended-context", engine{front: endless}},
	{"calls a call that was not made fenced", "ended-context", engine{front: hasty}},
}

// late answers Head as of the call before.
func late(l shardlog.Log) shardlog.Log {
	var mu sync.Mutex
	before := make(map[int]shardlog.State)
	return &changed{Log: l, append: func(ctx context.Context, shard int, chain uint64, r shardlog.Record) error {
		mu.Lock()
		before[shard] = headOf(l, shard)
		mu.Unlock()
		return l.Append(ctx, shard, chain, r)
	}, head: func(ctx context.Context, shard int) (shardlog.State, error) {
		h, err := l.Head(ctx, shard)
		mu.Lock()
		defer mu.Unlock()
		if b, ok := before[shard]; ok && b.Term == h.Term {
			return b, err
		}
		return h, err
	}}
}

// behind has First at the position that was asked for, however late.
func behind(l shardlog.Log) shardlog.Log {
	var first shardlog.Position
	return &changed{Log: l, truncate: func(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error {
		first = max(first, upTo+1)
		return l.Truncate(ctx, shard, term, upTo)
	}, head: func(ctx context.Context, shard int) (shardlog.State, error) {
		h, err := l.Head(ctx, shard)
		h.First = max(h.First, first)
		return h, err
	}}
}

// unfenced says that a log is lost, and lets its owner append.
func unfenced() engine {
	lost := make(map[int]string)
	return engine{
		lose: func(_ *memlog.Log, shard int, where string) { lost[shard] = where },
		front: func(l shardlog.Log) shardlog.Log {
			return &changed{Log: l, head: func(ctx context.Context, shard int) (shardlog.State, error) {
				h, err := l.Head(ctx, shard)
				h.Lost = lost[shard]
				return h, err
			}}
		},
	}
}

// claimsLost lets an owner claim a log in quarantine.
func claimsLost(l shardlog.Log) shardlog.Log {
	return &changed{Log: l, claim: func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
		h, err := l.Claim(ctx, shard, owner, seen)
		if now := headOf(l, shard); now.Lost != "" && now.Term == seen {
			now.Term, now.Owner = seen+1, owner
			return now, nil
		}
		return h, err
	}}
}

// endless makes its calls with a context that never ends.
func endless(l shardlog.Log) shardlog.Log {
	return &changed{
		Log: l,
		append: func(_ context.Context, shard int, before uint64, r shardlog.Record) error {
			return l.Append(context.Background(), shard, before, r)
		},
		read: func(_ context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
			return l.Read(context.Background(), shard, from, f)
		},
	}
}

// hasty returns ErrFenced if the context has ended.
func hasty(l shardlog.Log) shardlog.Log {
	return &changed{Log: l, append: func(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
		err := l.Append(ctx, shard, before, r)
		if errors.Is(err, context.Canceled) {
			return shardlog.ErrFenced
		}
		return err
	}}
}

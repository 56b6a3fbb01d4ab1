package shardlogtest_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

type claiming = func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error)

// claimsBy is an engine with another Claim.
func claimsBy(other func(l shardlog.Log) claiming) engine {
	return engine{front: func(l shardlog.Log) shardlog.Log { return &changed{Log: l, claim: other(l)} }}
}

var claimLiars = []liar{
	{"gives a term twice", "claims fence", claimsBy(func(l shardlog.Log) claiming {
		return func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
			if h := headOf(l, shard); h.Term == seen+1 {
				h.Owner = owner
				return h, nil
			}
			return l.Claim(ctx, shard, owner, seen)
		}
	})},
	{"claims after any term", "fence claims cut-claim", claimsBy(func(l shardlog.Log) claiming {
		return func(ctx context.Context, shard int, owner string, _ uint64) (shardlog.State, error) {
			return l.Claim(ctx, shard, owner, headOf(l, shard).Term)
		}
	})},
	{"compares the term before it claims", "claims", claimsBy(func(l shardlog.Log) claiming {
		return func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
			if headOf(l, shard).Term != seen {
				return shardlog.State{}, shardlog.ErrFenced
			}
			for range 10 { // so that claims overlap
				runtime.Gosched()
			}
			return l.Claim(ctx, shard, owner, headOf(l, shard).Term)
		}
	})},
	{"gives a node its own term again", "same-node", claimsBy(func(l shardlog.Log) claiming {
		return func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
			h := headOf(l, shard)
			if node, _, _ := strings.Cut(owner, "/"); seen > 0 && strings.HasPrefix(h.Owner, node+"/") {
				return h, nil
			}
			return l.Claim(ctx, shard, owner, seen)
		}
	})},
	{"keeps the node of an owner alone", "same-node cut-claim", claimsBy(func(l shardlog.Log) claiming {
		return func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
			node, _, _ := strings.Cut(owner, "/")
			h, err := l.Claim(ctx, shard, node, seen)
			h.Owner = owner
			return h, err
		}
	})},
	{"calls an unknown claim lost", "cut-claim", cuttable(claimsBy(func(l shardlog.Log) claiming {
		return func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
			h, err := l.Claim(ctx, shard, owner, seen)
			if errors.Is(err, errCut) {
				err = shardlog.ErrFenced
			}
			return h, err
		}
	}))},
	{"calls an unknown claim won", "cut-claim", cuttable(claimsBy(func(l shardlog.Log) claiming {
		return func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
			h, err := l.Claim(ctx, shard, owner, seen)
			if errors.Is(err, errCut) {
				h = headOf(l, shard)
				h.Term, h.Owner, err = seen+1, owner, nil
			}
			return h, err
		}
	}))},
	{"has one owner for all shards", "shards", engine{front: oneOwner}},
}

// oneOwner has each claim end the terms of all other shards too.
func oneOwner(l shardlog.Log) shardlog.Log {
	var mu sync.Mutex
	var known []int
	return &changed{Log: l, claim: func(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, other := range known {
			if other != shard {
				_, _ = l.Claim(ctx, other, owner, headOf(l, other).Term)
			}
		}
		known = append(known, shard)
		return l.Claim(ctx, shard, owner, seen)
	}}
}

package shardlogtest_test

import (
	"bytes"
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

type readingBy = func(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error

// reads is an engine with another Read.
func reads(other func(l shardlog.Log) readingBy) engine {
	return engine{front: func(l shardlog.Log) shardlog.Log { return &changed{Log: l, read: other(l)} }}
}

// gives is an engine with a Read that gives other records, or not all.
func gives(other func(r *shardlog.Record, last shardlog.Position) (give bool)) engine {
	return reads(func(l shardlog.Log) readingBy {
		return func(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
			last := headOf(l, shard).Last
			return l.Read(ctx, shard, from, func(r shardlog.Record) error {
				if !other(&r, last) {
					return nil
				}
				return f(r)
			})
		}
	})
}

var readLiars = []liar{
	{"skips a record", "order read", gives(func(r *shardlog.Record, _ shardlog.Position) bool { return r.At != 2 })},
	{"ends early", "order read durable", gives(func(r *shardlog.Record, last shardlog.Position) bool { return r.At < last })},
	{"flips a byte", "order", gives(func(r *shardlog.Record, _ shardlog.Position) bool {
		if r.At == 2 {
			r.Payload = bytes.Clone(r.Payload)
			r.Payload[0] ^= 0x10
		}
		return true
	})},
	{"gives another chain", "order", gives(func(r *shardlog.Record, _ shardlog.Position) bool {
		r.Chain &= 1<<63 - 1
		return true
	})},
	{"gives the term of another record", "order", gives(func(r *shardlog.Record, _ shardlog.Position) bool {
		if r.At == 20 {
			r.Term++
		}
		return true
	})},
	{"cuts off a payload", "payloads", gives(func(r *shardlog.Record, _ shardlog.Position) bool {
		r.Payload = r.Payload[:min(len(r.Payload), 1<<20)]
		return true
	})},
	{"reads from the first record", "read", reads(func(l shardlog.Log) readingBy {
		return func(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
			return l.Read(ctx, shard, min(from, headOf(l, shard).First), f)
		}
	})},
	{"gives the last record for ever", "read", reads(func(l shardlog.Log) readingBy {
		return func(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
			h := headOf(l, shard)
			return l.Read(ctx, shard, max(h.First, min(from, h.Last)), f)
		}
	})},
	{"reads on after an error", "read", reads(func(l shardlog.Log) readingBy {
		return func(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
			var first error
			err := l.Read(ctx, shard, from, func(r shardlog.Record) error {
				first = errors.Join(first, f(r))
				return nil
			})
			return errors.Join(first, err)
		}
	})},
	{"forgets the error of the reader", "read", reads(func(l shardlog.Log) readingBy {
		return func(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
			var own error
			err := l.Read(ctx, shard, from, func(r shardlog.Record) error { own = f(r); return own })
			if own != nil {
				return nil
			}
			return err
		}
	})},
	{"reads on behind records that were truncated", "read-beside", engine{front: jumps}},
	{"calls truncated records a hole", "truncate base read-beside", engine{front: holed}},
	{"ignores the base", "base truncate", reads(func(l shardlog.Log) readingBy {
		return func(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
			return l.Read(ctx, shard, max(from, headOf(l, shard).First), f)
		}
	})},
}

// jumps reads one record at a time, and goes on with the first that is left.
func jumps(l shardlog.Log) shardlog.Log {
	return &changed{Log: l, read: func(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
		for begin := from; ; {
			next, own := from, error(nil)
			err := l.Read(ctx, shard, from, func(r shardlog.Record) error {
				next, own = r.At+1, f(r)
				return errPage
			})
			switch {
			case own != nil:
				return own
			case errors.Is(err, shardlog.ErrTruncated) && from > begin:
				from = headOf(l, shard).First
				continue
			case next == from:
				return err
			}
			from = next
		}
	}}
}

// holed reads one record at a time, and returns ErrHole for each that was truncated.
func holed(l shardlog.Log) shardlog.Log {
	return &changed{Log: l, read: func(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
		for {
			next, own := from, error(nil)
			err := l.Read(ctx, shard, from, func(r shardlog.Record) error {
				next, own = r.At+1, f(r)
				return errPage
			})
			switch {
			case own != nil:
				return own
			case errors.Is(err, shardlog.ErrTruncated):
				return shardlog.ErrHole
			case next == from:
				return err
			}
			from = next
		}
	}}
}

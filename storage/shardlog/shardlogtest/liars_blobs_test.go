package shardlogtest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

var blobLiars = []directoryLiar{
	{"has the blobs of all shards in one place", "blobs collect", changes(func(o *other) {
		o.put = func(ctx context.Context, _ int, name string, r io.Reader) error { return o.Log.Put(ctx, 0, name, r) }
		o.get = func(ctx context.Context, _ int, name string, f func([]byte) error) error {
			return o.Log.Get(ctx, 0, name, f)
		}
		o.list = func(ctx context.Context, _ int) ([]shardlog.Blob, error) { return o.Log.List(ctx, 0) }
	})},
	{"stores the first part alone", "blobs", changes(func(o *other) {
		o.put = func(ctx context.Context, shard int, name string, r io.Reader) error {
			return o.Log.Put(ctx, shard, name, io.LimitReader(r, shardlog.PartBytes))
		}
	})},
	{"stores one read of the reader", "blobs", changes(func(o *other) {
		o.put = func(ctx context.Context, shard int, name string, r io.Reader) error {
			part := make([]byte, shardlog.PartBytes)
			n, _ := r.Read(part)
			return o.Log.Put(ctx, shard, name, bytes.NewReader(part[:n]))
		}
	})},
	{"does not store an empty blob", "blobs", changes(func(o *other) {
		o.put = func(ctx context.Context, shard int, name string, r io.Reader) error {
			b, err := io.ReadAll(r)
			if err != nil || len(b) == 0 {
				return err
			}
			return o.Log.Put(ctx, shard, name, bytes.NewReader(b))
		}
	})},
	{"gives a blob as one part", "blobs", changes(func(o *other) {
		o.get = func(ctx context.Context, shard int, name string, f func([]byte) error) error {
			var whole []byte
			if err := o.Log.Get(ctx, shard, name, func(part []byte) error { whole = append(whole, part...); return nil }); err != nil {
				return err
			}
			return f(whole)
		}
	})},
	{"gives the last part first", "blobs", changes(func(o *other) {
		o.get = func(ctx context.Context, shard int, name string, f func([]byte) error) error {
			var parts [][]byte
			if err := o.Log.Get(ctx, shard, name, func(part []byte) error { parts = append(parts, part); return nil }); err != nil {
				return err
			}
			for _, part := range slices.Backward(parts) {
				if err := f(part); err != nil {
					return err
				}
			}
			return nil
		}
	})},
	{"flips a bit", "blobs", changes(func(o *other) {
		o.get = func(ctx context.Context, shard int, name string, f func([]byte) error) error {
			return o.Log.Get(ctx, shard, name, func(part []byte) error {
				part[len(part)-1] ^= 1
				return f(part)
			})
		}
	})},
	{"lists no lengths", "blobs", lists(func(b []shardlog.Blob) []shardlog.Blob {
		for i := range b {
			b[i].Bytes = 0
		}
		return b
	})},
	{"lists in the wrong order", "blobs", lists(func(b []shardlog.Blob) []shardlog.Blob { slices.Reverse(b); return b })},
	{"stores the half of a reader that fails", "blob-errors", changes(func(o *other) {
		o.put = func(ctx context.Context, shard int, name string, r io.Reader) error {
			b, failed := io.ReadAll(r)
			return errors.Join(failed, o.Log.Put(ctx, shard, name, bytes.NewReader(b)))
		}
	})},
	{"takes the error of a reader for its end", "blob-errors", changes(func(o *other) {
		o.put = func(ctx context.Context, shard int, name string, r io.Reader) error {
			_ = o.Log.Put(ctx, shard, name, r)
			return nil
		}
	})},
	{"stores a blob without a name", "blob-errors", changes(func(o *other) {
		o.put = func(ctx context.Context, shard int, name string, r io.Reader) error {
			if name == "" {
				return nil
			}
			return o.Log.Put(ctx, shard, name, r)
		}
	})},
	{"gives an absent blob as an empty one", "blob-errors collect", changes(func(o *other) {
		o.get = func(ctx context.Context, shard int, name string, f func([]byte) error) error {
			if err := o.Log.Get(ctx, shard, name, f); !errors.Is(err, shardlog.ErrMissing) {
				return err
			}
			return nil
		}
	})},
	{"goes on after the function of Get has failed", "blob-errors", changes(func(o *other) {
		o.get = func(ctx context.Context, shard int, name string, f func([]byte) error) error {
			return o.Log.Get(ctx, shard, name, func(part []byte) error { _ = f(part); return nil })
		}
	})},
	{"removes nothing", "collect collect-beside accept-loss", collects(func(*other, context.Context, int, uint64) error { return nil })},
	{"removes the blobs of all shards", "collect", collects(func(o *other, ctx context.Context, shard int, term uint64) error {
		for n := range used {
			_ = o.Log.Collect(ctx, n, headOf(o.Log, n).Term)
		}
		return o.Log.Collect(ctx, shard, term)
	})},
	{"removes the blobs of older snapshots", "collect", changes(removesOlder)},
	{"collects for any term", "collect-refused", collects(func(o *other, ctx context.Context, shard int, _ uint64) error {
		return o.Log.Collect(ctx, shard, headOf(o.Log, shard).Term)
	})},
	{"says that it has collected in quarantine", "collect-refused", collects(func(o *other, ctx context.Context, shard int, term uint64) error {
		if headOf(o.Log, shard).Lost != "" {
			return nil
		}
		return o.Log.Collect(ctx, shard, term)
	})},
	{"looks for the blobs before it registers", "collect-beside", changes(looksFirst)},
}

// lists is an engine with changed lists of blobs.
func lists(change func([]shardlog.Blob) []shardlog.Blob) both {
	return changes(func(o *other) {
		o.list = func(ctx context.Context, shard int) ([]shardlog.Blob, error) {
			b, err := o.Log.List(ctx, shard)
			return change(b), err
		}
	})
}

// collects is an engine with another Collect.
func collects(collect func(o *other, ctx context.Context, shard int, term uint64) error) both {
	return changes(func(o *other) {
		o.collect = func(ctx context.Context, shard int, term uint64) error { return collect(o, ctx, shard, term) }
	})
}

// removesOlder hides the blobs of all snapshots but the newest, once they were collected.
func removesOlder(o *other) {
	gone := make(map[string]bool)
	o.collect = func(ctx context.Context, shard int, term uint64) error {
		snapshots, _ := o.Log.Snapshots(ctx, shard)
		for _, name := range listed(o.Log, shard) {
			gone[name] = len(snapshots) > 0 && !slices.Contains(snapshots[0].Blobs, name)
		}
		return o.Log.Collect(ctx, shard, term)
	}
	o.list = func(ctx context.Context, shard int) ([]shardlog.Blob, error) {
		b, err := o.Log.List(ctx, shard)
		return slices.DeleteFunc(b, func(b shardlog.Blob) bool { return gone[b.Name] }), err
	}
}

// looksFirst registers a snapshot in two steps: it looks for the blobs, and adds a snapshot that a collection beside it does not see.
func looksFirst(o *other) {
	collected := make(chan struct{}, 1) // a collection has run
	o.collect = func(ctx context.Context, shard int, term uint64) error {
		err := o.Log.Collect(ctx, shard, term)
		select {
		case collected <- struct{}{}:
		default:
		}
		return err
	}
	o.register = func(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
		select {
		case <-collected: // an earlier one
		default:
		}
		for _, name := range s.Blobs {
			if !slices.Contains(listed(o.Log, shard), name) {
				return shardlog.ErrMissing
			}
		}
		<-collected // the one beside comes in between
		unnamed := s
		unnamed.Blobs = nil
		return o.Log.Register(ctx, shard, term, unnamed)
	}
}

package workload

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Uploads is the log of a cluster. It counts the snapshots that are registered, the bytes of files that were uploaded for them, and the
// truncations behind them. Its methods may be called from any goroutine.
type Uploads struct {
	cluster.Log
	taken, bytes, truncations atomic.Int64
}

// Put uploads a file, and counts its bytes, also those of an upload that fails. A file that is there already is not read.
func (u *Uploads) Put(ctx context.Context, shard int, name string, r io.Reader) error {
	return u.Log.Put(ctx, shard, name, counted{r, &u.bytes})
}

// Register registers a snapshot, and counts it.
func (u *Uploads) Register(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
	err := u.Log.Register(ctx, shard, term, s)
	if err == nil {
		u.taken.Add(1)
	}
	return err
}

// Truncate removes records, and counts the truncation.
func (u *Uploads) Truncate(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error {
	err := u.Log.Truncate(ctx, shard, term, upTo)
	if err == nil {
		u.truncations.Add(1)
	}
	return err
}

// Taken is how many snapshots were registered until now.
func (u *Uploads) Taken() int64 { return u.taken.Load() }

// Bytes is how many bytes were uploaded until now.
func (u *Uploads) Bytes() int64 { return u.bytes.Load() }

// Truncations is how often the log was truncated until now.
func (u *Uploads) Truncations() int64 { return u.truncations.Load() }

// counted is a reader that counts its bytes.
type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// DefaultRate is how many bytes a second Take uploads, see Options.BytesPerSecond.
const DefaultRate = 16 << 20

// Errors of this package. Others are those of storage and shardlog.
var (
	// ErrNone is returned by Restore for a log that has no snapshot and begins at 1: an empty view reads all of it.
	ErrNone = errors.New("snapshot: the log has no snapshot and needs none")
	// ErrDamaged is wrapped where a snapshot is not the one that was taken: a manifest, or a blob with another hash.
	ErrDamaged = errors.New("snapshot: the snapshot is damaged")
)

// Options say which log the snapshots are of. Its methods may be called from any goroutine, but see the limits of the package.
type Options struct {
	// Directory registers the snapshots. Required.
	Directory shardlog.Directory
	// Blobs keeps their files. Required.
	Blobs shardlog.Blobs
	// Log is truncated. Required.
	Log shardlog.Log
	// Shard is the number of the log. It must not be negative. Default: 0.
	Shard int
	// BytesPerSecond bounds the uploads of Take, so that commits do not wait behind them. Negative: no limit. Default: 16 MiB.
	BytesPerSecond int64
	// MinFreeBytes is the free space that Restore leaves. Negative: it may take all. Default: 192 MiB, as that of storage.Options.
	MinFreeBytes int64
	// FS is the file system of views and scratch directories. Default: the operating system's.
	FS pebblestore.FS
	// Seams are the clock and the probe. Its points are snapshot/copied, snapshot/uploaded, snapshot/registered, snapshot/fetched,
	// truncate and snapshot/collect. Zero: production.
	Seams seam.Seams
	// Logger receives a line when long work begins and ends, and every 10 seconds while it goes on. Default: nothing.
	Logger *slog.Logger
}

// withDefaults returns o with its defaults, or the first mistake in it.
func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Directory == nil || o.Blobs == nil || o.Log == nil:
		return o, errors.New("snapshot: Options.Directory, Blobs and Log are required: open a log, for example with package pglog")
	case o.Shard < 0:
		return o, fmt.Errorf("snapshot: Options.Shard is %d: it must not be negative", o.Shard)
	}
	o.BytesPerSecond = cmp.Or(o.BytesPerSecond, DefaultRate)
	o.Seams = o.Seams.WithDefaults()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = o.Logger.With("shard", o.Shard)
	return o, nil
}

// storage are the options of package storage for a view in dir.
func (o Options) storage(dir string) storage.Options {
	return storage.Options{Dir: dir, MinFreeBytes: o.MinFreeBytes, Pebble: o.pebble(), Seams: o.Seams, Log: o.Logger}
}

// smallCache is the cache of a database that is opened for one row.
const smallCache = 1 << 20

func (o Options) pebble() pebblestore.Options {
	return pebblestore.Options{FS: o.FS, CacheBytes: smallCache, Log: o.Logger}
}

// owned returns the head, or ErrFenced if term is not the newest or the shard is in quarantine.
func (o Options) owned(ctx context.Context, term uint64) (shardlog.State, error) {
	look, err := o.Directory.Look(ctx, o.Shard)
	switch state := look.State; {
	case err != nil:
		return state, err
	case state.Lost != "":
		return state, fmt.Errorf("%w: the shard is in quarantine: %s", shardlog.ErrFenced, state.Lost)
	case state.Term != term:
		return state, fmt.Errorf("%w: %s, term %d", shardlog.ErrFenced, state.Owner, state.Term)
	}
	return look.State, nil
}

// wrap adds the shard to an error of a verb.
func (o Options) wrap(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("snapshot: %s of shard %d: %w", verb, o.Shard, err)
}

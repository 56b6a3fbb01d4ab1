package move

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/snapshot"
)

// Options say which log a store moves to, or from. Its methods may be called from any goroutine.
type Options struct {
	// Snapshots is the log with its directory and its blobs, the shard, the file system, the rate of uploads, the floor of free space, seams and
	// logger. Its seams get the points import/uploaded, import/moving, import/begun, import/moved, export/closed and export/detached. Required.
	Snapshots snapshot.Options
	// Shards is the number of shards that the store must have, see storage.Options. Default: any, and 64 for the export of a log without a snapshot.
	Shards int
	// Again lets Export take over the export of another directory, which is lost: if that one exists and is exported later, there are two
	// stores. Default: such an export is refused with shardlog.ErrExported.
	Again bool
}

// complete returns an error if the log is missing.
func (o Options) complete() error {
	if s := o.Snapshots; s.Log == nil || s.Directory == nil || s.Blobs == nil {
		return errors.New("move: Options.Snapshots has no Log, Directory or Blobs: open a log, for example with package pglog")
	}
	return nil
}

// storage are the options of the store in dir.
func (o Options) storage(dir string) storage.Options {
	s := o.Snapshots
	return storage.Options{
		Dir: dir, Shards: o.Shards, MinFreeBytes: s.MinFreeBytes,
		Pebble: pebblestore.Options{FS: s.FS}, Seams: s.Seams, Log: s.Logger,
	}
}

// log are the options of the log.
func (o Options) log() shardlog.Options {
	s := o.Snapshots
	return shardlog.Options{Log: s.Log, Shard: s.Shard, Seams: s.Seams, Logger: s.Logger}
}

// at tells the probe of a point.
func (o Options) at(point string) { o.Snapshots.Seams.At(point, "") }

// info writes a line to the log, if there is one.
func (o Options) info(text string, args ...any) {
	if o.Snapshots.Logger != nil {
		o.Snapshots.Logger.Info(text, append(args, "shard", o.Snapshots.Shard)...)
	}
}

// wrap adds the directory to an error.
func wrap(verb, dir string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("move: %s of %s: %w", verb, dir, err)
}

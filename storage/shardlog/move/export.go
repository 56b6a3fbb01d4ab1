package move

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// # The order of Export
//
//  1. The view in the directory is brought up to the end of the log, from a snapshot if it is too old.
//  2. The row "export" gets random bits, and the log is claimed under a name with these bits, which no owner follows. From here on
//     no process opens the log.
//  3. The records that came before the claim are read, and the view is flushed.
//  4. One batch takes the position row away and 2^20 epochs. Then the format file loses the line "view". From here on the directory opens.
//
// A crash up to step 2 leaves the log as it was. After it neither opens, and Export goes on with the same directory.

// Export closes the log for good and makes dir the store of it, which storage.Open opens without the log. dir is a view of the log, which it brings
// up to date, or is absent or empty. Another process that owns the log is fenced. After a crash or an error it is called again with the
// same directory and goes on; it is nil if all is done.
//
// It returns shardlog.ErrExported if the log was exported to another directory (see Options.Again), storage.ErrMovedStore if dir is another store, and
// storage.ErrLocked if a program has it open. The others are those of shardlog.Open and snapshot.Options.Restore. The end of ctx
// ends it before a step and while a snapshot is restored; the log is waited for up to 5 minutes.
func (o Options) Export(ctx context.Context, dir string) error {
	if err := o.complete(); err != nil {
		return err
	}
	err := o.end(ctx, dir)
	if errors.Is(err, storage.ErrMovedStore) {
		if done, looked := o.exported(ctx, dir); looked != nil || done {
			return wrap("export", dir, looked)
		}
	}
	return wrap("export", dir, err)
}

// end ends the log with the view in dir, and detaches the view.
func (o Options) end(ctx context.Context, dir string) error {
	if err := seam.Cause(ctx); err != nil {
		return err
	}
	err := o.closeLog(dir)
	if errors.Is(err, shardlog.ErrTruncated) || errors.Is(err, storage.ErrRestoring) {
		if _, err := o.Snapshots.Restore(ctx, dir); err != nil {
			return err
		}
		err = o.closeLog(dir)
	}
	if err != nil {
		return err
	}
	o.at("export/closed")
	if err := storage.DetachView(o.storage(dir), shardlog.PositionRow); err != nil {
		return err
	}
	o.at("export/detached")
	o.info("move: the store is in its directory", "dir", dir)
	return nil
}

// closeLog brings the view in dir up to the end of the log, and ends that.
func (o Options) closeLog(dir string) error {
	return storage.FillView(o.storage(dir), func(view engine.Engine) error {
		_, err := shardlog.Export(o.log(), view, o.Again)
		return err
	})
}

// exported reports whether the store in dir is the one that the log was exported to.
func (o Options) exported(ctx context.Context, dir string) (bool, error) {
	head, err := o.Snapshots.Log.Head(ctx, o.Snapshots.Shard)
	if err != nil || !head.Exported() {
		return false, err
	}
	store, err := storage.OpenReadOnly(o.storage(dir))
	if errors.Is(err, storage.ErrMovedStore) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	bits, _, err := store.Meta(shardlog.ExportRow)
	return head.ExportedTo(bits), errors.Join(err, store.Close())
}

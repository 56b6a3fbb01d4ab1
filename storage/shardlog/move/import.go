package move

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/snapshot"
)

// # The order of Import
//
//  1. The directory is locked, and its store is closed in order.
//  2. Its files are uploaded and read back.
//  3. The format file is marked: moving to the cluster. From here on the directory does not open.
//  4. The log begins with the base. From here on the log is the store.
//  5. The format file is marked: moved to the cluster.
//
// A crash up to step 3 leaves the store as it was. Between 3 and 5 the directory does not open, and Import goes on: the log tells, by the
// id of the store in its snapshots, whether step 4 was done. The files do not change from step 3 on, so a repeat makes the same base.

// Import makes the store in dir the base of the log, which must be fresh, and marks the directory as moved to the cluster of that name. After a
// crash or an error it is called again and goes on. Without an error the directory is an old copy, which nothing opens any more.
//
// It returns shardlog.ErrRefused if the log has begun without this store, storage.ErrMovedStore if the directory is a view or marked with another
// cluster, and storage.ErrLocked if a program has the store open; then nothing was changed. The others are those of storage.Open and of
// snapshot.Options.Take. The end of ctx ends it with its cause.
func (o Options) Import(ctx context.Context, dir, cluster string) error {
	if err := (storage.Move{Cluster: cluster}).Validate(); err != nil {
		return err
	}
	return o.leaving("import", dir, func(store *storage.Leaving) error { return o.enter(ctx, store, cluster) })
}

// leaving calls do with the closed store in dir.
func (o Options) leaving(verb, dir string, do func(*storage.Leaving) error) error {
	if err := o.complete(); err != nil {
		return err
	}
	store, err := storage.Leave(o.storage(dir))
	if err != nil {
		return wrap(verb, dir, err)
	}
	return wrap(verb, dir, errors.Join(do(store), store.Close()))
}

// enter takes a closed store into the log.
func (o Options) enter(ctx context.Context, store *storage.Leaving, cluster string) error {
	moving, moved := storage.Move{Cluster: cluster}, storage.Move{Cluster: cluster, Done: true}
	if has := store.Move(); has == moved || has.Cluster != "" && has != moving {
		return store.Mark(moved) // nil, or the error that names the other cluster
	}
	begun, err := o.begunWith(ctx, store)
	switch {
	case err != nil:
		return err
	case begun && store.Move() == moving:
		return store.Mark(moved)
	case begun:
		return fmt.Errorf("%w: the log of shard %d has begun with another copy of this store", shardlog.ErrRefused, o.Snapshots.Shard)
	}
	if err := o.begin(ctx, store, moving); err != nil {
		return err
	}
	o.at("import/begun")
	if err := store.Mark(moved); err != nil {
		return err
	}
	o.at("import/moved")
	o.info("move: the store is in the log", "dir", store.Dir(), "cluster", cluster)
	return nil
}

// begin uploads the base, marks the directory, and begins the log.
func (o Options) begin(ctx context.Context, store *storage.Leaving, moving storage.Move) error {
	base, err := o.Snapshots.Base(ctx, store)
	if err != nil {
		return err
	}
	if err := o.Snapshots.Verify(ctx, base); err != nil {
		return err
	}
	o.at("import/uploaded")
	if err := store.Mark(moving); err != nil {
		return err
	}
	o.at("import/moving")
	return o.Snapshots.Directory.Begin(ctx, o.Snapshots.Shard, base)
}

// begunWith reports whether the log has begun with this store. It is an error if it has begun without it. Head waits for a call of an
// earlier Import that the engine has under way.
func (o Options) begunWith(ctx context.Context, store *storage.Leaving) (bool, error) {
	head, err := o.Snapshots.Log.Head(ctx, o.Snapshots.Shard)
	if err != nil {
		return false, err
	}
	if head == (shardlog.State{First: 1}) {
		return false, nil
	}
	all, err := o.Snapshots.Directory.Snapshots(ctx, o.Snapshots.Shard)
	if err != nil {
		return false, err
	}
	for _, s := range all {
		if id, err := snapshot.StoreID(s); err == nil && id == store.ID() && head.First > 1 {
			return true, nil
		}
	}
	return false, fmt.Errorf("%w: the log of shard %d has begun without this store: it has term %d and ends at record %d", shardlog.ErrRefused, o.Snapshots.Shard, head.Term, head.Last)
}

// Undo takes back an Import as long as the log has not begun: the store in dir opens again. It changes nothing in a directory without a mark. It returns
// storage.ErrMovedStore, and changes nothing, if the log has begun with the store: then Import goes on. The process of the
// Import must have ended. The other errors are those of Import.
func (o Options) Undo(ctx context.Context, dir string) error {
	return o.leaving("undo", dir, func(store *storage.Leaving) error {
		if !store.Move().Done && store.Move().Cluster != "" {
			begun, err := o.begunWith(ctx, store)
			if err != nil && !errors.Is(err, shardlog.ErrRefused) {
				return err
			}
			if begun {
				return fmt.Errorf("%w: the log has begun with this store: import it again", storage.ErrMovedStore)
			}
		}
		return store.Mark(storage.Move{})
	})
}

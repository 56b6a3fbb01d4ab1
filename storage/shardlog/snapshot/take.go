package snapshot

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// # The order of Take
//
//  1. A sync of the store brings its position up to all that is acknowledged.
//  2. The view is flushed and copied to the scratch directory, as links. The position row of the copy is that of the snapshot.
//  3. Each file gets its hash. Blobs that are not there are uploaded.
//  4. The snapshot is registered under the term, which makes the blobs durable. The log has it from here on.
//  5. The scratch directory is removed.
//
// A crash before step 4 leaves blobs that no snapshot names, which Trim collects, and perhaps the scratch directory.

// Take copies the store, which is a view of the log, into blobs and registers the copy under the term of its owner. scratch is a
// directory that does not exist, on the disk of the view, so that tables are linked; Take removes it again. A crash may leave it: then the
// caller removes it before the next Take.
//
// An error is that of the snapshot alone, but for an error of the log at the flush, which ends the store. It wraps shardlog.ErrFenced if
// another owner has begun a term, and storage.ErrBadTarget if scratch exists. The end of ctx ends it with the cause of ctx. After
// any error Take may be called again.
func (o Options) Take(ctx context.Context, s *storage.Store, term uint64, scratch string) (taken shardlog.Snapshot, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return taken, err
	}
	defer func() { err = o.wrap("taking", err) }()
	if err := s.WaitSeen(ctx); err != nil {
		return taken, err
	}
	if err := s.CheckpointView(ctx, scratch); err != nil {
		return taken, err
	}
	dir := o.pebble().Dir(scratch)
	defer func() { err = errors.Join(err, dir.FS.RemoveAll(scratch)) }()
	o.Seams.At("snapshot/copied", "")
	if taken, err = o.upload(ctx, dir, manifest{store: s.ID()}); err != nil {
		return shardlog.Snapshot{}, err
	}
	if taken.Last, taken.Chain, err = o.position(dir); err != nil {
		return shardlog.Snapshot{}, err
	}
	o.Seams.At("snapshot/uploaded", "")
	if err := o.Directory.Register(ctx, o.Shard, term, taken); err != nil {
		return shardlog.Snapshot{}, fmt.Errorf("register: %w", err)
	}
	o.Seams.At("snapshot/registered", "")
	return taken, nil
}

// position reads the position row of a view that no store has open.
func (o Options) position(dir pebblestore.Dir) (at shardlog.Position, chain uint64, err error) {
	db, err := pebblestore.OpenReadOnly(dir.Path, o.pebble())
	if err != nil {
		return 0, 0, err
	}
	at, chain, err = shardlog.ViewPosition(db)
	if err == nil && at == 0 {
		err = fmt.Errorf("%w: the view in %s does not say how far it has the log", ErrDamaged, dir.Path)
	}
	return at, chain, errors.Join(err, db.Close())
}

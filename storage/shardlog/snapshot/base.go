package snapshot

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Base uploads the files of a store of one machine and returns the snapshot with which a log can begin (shardlog.Directory.Begin). Its
// place is record 1, with the hash of the manifest as chain. It is registered nowhere yet, and its blobs may be lost in a crash of the
// engine. A repeat for the same files returns the same snapshot. The errors are those of Take.
func (o Options) Base(ctx context.Context, store *storage.Leaving) (base shardlog.Snapshot, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return base, err
	}
	dir := o.pebble().Dir(store.Dir())
	base, err = o.upload(ctx, dir, manifest{store: store.ID(), base: true}, memory{storage.FormatFile, []byte(store.ViewFormat())})
	if err != nil {
		return shardlog.Snapshot{}, o.wrap("the base", err)
	}
	base.Last, base.Chain = 1, chainOf(base.Manifest)
	return base, nil
}

// StoreID is the id of the store that a snapshot is of, see storage.Store.ID. All snapshots of a log have that of its base. The error
// is that of a damaged manifest.
func StoreID(s shardlog.Snapshot) (string, error) {
	m, err := read(s)
	return m.store, err
}

// placeBase makes the files of a store of one machine a view of the log behind them.
func (o Options) placeBase(s shardlog.Snapshot, dir pebblestore.Dir, lock *pebblestore.Lock) error {
	p := o.pebble()
	p.NoLog, p.Lock, p.MustExist = true, lock, true
	db, err := pebblestore.Open(dir.Path, p)
	if err != nil {
		return fmt.Errorf("open the base: %w", err)
	}
	err = shardlog.SetViewPosition(db, s.Last, s.Chain)
	if err == nil {
		err = db.Sync()
	}
	return errors.Join(err, db.Close())
}

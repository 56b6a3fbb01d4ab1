package harness

import (
	"fmt"
	"path"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// tear lets the power fail between the write of a sync and its end.
func (d *pebbleDisk) tear(seed uint64, shadow *memstore.Store) (kept int, err error) {
	if d.unsynced() == 0 {
		d.crash(0)
		return 0, nil
	}
	moment := d.duringSync()
	d.zombie, d.engine = d.engine, nil
	mem, err := moment.Image(crashfs.Keep(seed))
	if err != nil {
		return 0, err
	}
	d.use(mem)
	return survived(moment, crashfs.Keep(seed), shadow)
}

// duringSync is the moment at which a sync has written all and synced nothing.
// Files that are tidied up beside it are synced at any time, so the log's counts.
func (d *pebbleDisk) duringSync() (moment crashfs.Moment) {
	seen := false
	d.fs.SetBefore(func(op crashfs.Op) error {
		if op.Kind == "sync" && path.Ext(op.Path) == ".log" && !seen {
			seen, moment = true, d.fs.Capture()
		}
		return nil
	})
	_ = d.engine.Engine.Sync() // of a machine that is no more
	d.fs.SetBefore(nil)
	return moment
}

// survived opens a copy of the torn disk and counts in it the batches that the shadow
// has as unsynced.
func survived(moment crashfs.Moment, keep crashfs.Keep, shadow *memstore.Store) (kept int, err error) {
	mem, err := moment.Image(keep)
	if err != nil {
		return 0, err
	}
	e, err := openPebble(mem)
	if err != nil {
		return 0, fmt.Errorf("the store does not open: %w", err)
	}
	left, err := copyOf(e)
	_ = e.(interface{ DB() *pebble.DB }).DB().Close() // without the flush of an orderly end
	if err != nil {
		return 0, err
	}
	for kept = shadow.Unsynced(); kept >= 0; kept-- {
		if err = compareStores(left, shadow.Crash(kept)); err == nil {
			return kept, nil
		}
	}
	return 0, fmt.Errorf("the torn store is no prefix of the commits: %w", err)
}

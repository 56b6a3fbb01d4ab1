package histories

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/torn"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// disk is what survives the processes of a history.
type disk interface {
	open() (storage.Engine, error)
	// crash is the disk as a cut at this moment leaves it. The present one can be
	// used on, by a process that does not know yet that it is dead.
	crash(r *rand.Rand) (disk, error)
	// closed is the disk after its engine was closed in order.
	closed() disk
}

type mapDisk struct{ mem *memstore.Store }

func newMapDisk() disk { return mapDisk{memstore.New()} }

func (d mapDisk) open() (storage.Engine, error) { return d.mem, nil }

func (d mapDisk) closed() disk { return mapDisk{d.mem.Crash(0)} }

func (d mapDisk) crash(r *rand.Rand) (disk, error) {
	return mapDisk{d.mem.Crash(r.IntN(2) * r.IntN(d.mem.Unsynced()+1))}, nil
}

type pebbleDisk struct{ fs *torn.FS }

func newPebbleDisk() disk { return pebbleDisk{torn.New(vfs.NewCrashableMem(), nil)} }

func (d pebbleDisk) open() (storage.Engine, error) {
	return storage.OpenPebble("store", storage.PebbleOptions{FS: d.fs, CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
}

func (d pebbleDisk) closed() disk { return d }

// crash keeps none of what was not synced, all of it, or a torn part.
func (d pebbleDisk) crash(r *rand.Rand) (disk, error) {
	keep := []torn.Keep{torn.KeepNone, torn.KeepNone, torn.KeepAll, torn.Keep(1 + r.Int64N(1<<60))}[r.IntN(4)]
	left, err := d.fs.Crash(keep)
	return pebbleDisk{torn.New(left, nil)}, err
}

// engine is a store's engine that is cut off in its middle.
type engine struct {
	storage.Engine
	left   atomic.Int64 // moments until the cut; not positive: none is planned, or it was
	cut    func()
	broken atomic.Bool // since the cut every write fails
	lazy   bool        // a bug: Sync does nothing
}

var errCut = errors.New("disk is gone")

// moment is one at which the cut may come.
func (e *engine) moment() error {
	if e.left.Add(-1) == 0 {
		e.cut()
	}
	if e.broken.Load() {
		return errCut
	}
	return nil
}

// during does an operation of the engine, with a moment before and after it. The
// pauses make more happen between a write and its sync than a fast disk would let.
func (e *engine) during(op func() error) error {
	if err := e.moment(); err != nil {
		return err
	}
	if err := op(); err != nil {
		return err
	}
	return e.moment()
}

func (e *engine) Apply(repr []byte) error {
	return e.during(func() error { return e.Engine.Apply(repr) })
}

func (e *engine) Sync() error {
	yield(10)
	defer yield(10)
	return e.during(func() error {
		if e.lazy {
			return nil
		}
		return e.Engine.Sync()
	})
}

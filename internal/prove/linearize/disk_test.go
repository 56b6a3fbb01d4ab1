package linearize

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// disk survives the processes of a history.
type disk interface {
	open() (engine.Engine, error)
	// crash is the disk as a cut at this moment leaves it. A process that does not know
	// yet that it is dead may go on to use the present disk.
	crash(r *rand.Rand) (disk, error)
	// closed is the disk after its engine was closed in order.
	closed() disk
}

type mapDisk struct{ mem *memstore.Store }

func newMapDisk() disk { return mapDisk{memstore.New()} }

func (d mapDisk) open() (engine.Engine, error) { return d.mem, nil }

func (d mapDisk) closed() disk { return mapDisk{d.mem.Crash(0)} }

func (d mapDisk) crash(r *rand.Rand) (disk, error) {
	return mapDisk{d.mem.Crash(r.IntN(2) * r.IntN(d.mem.Unsynced()+1))}, nil
}

type pebbleDisk struct{ fs *crashfs.FS }

func newPebbleDisk() disk { return pebbleDisk{crashfs.New(vfs.NewCrashableMem(), nil)} }

func (d pebbleDisk) open() (engine.Engine, error) {
	return pebblestore.Open("store", pebblestore.Options{FS: d.fs, CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
}

func (d pebbleDisk) closed() disk { return d }

// crash keeps none of the unsynced bytes, all of them, or a torn part.
func (d pebbleDisk) crash(r *rand.Rand) (disk, error) {
	keep := []crashfs.Keep{crashfs.KeepNone, crashfs.KeepNone, crashfs.KeepAll, crashfs.Keep(1 + r.Int64N(1<<60))}[r.IntN(4)]
	left, err := d.fs.Crash(keep)
	return pebbleDisk{crashfs.New(left, nil)}, err
}

// cutEngine is a store's engine that is cut off in its middle.
type cutEngine struct {
	engine.Engine
	left   atomic.Int64 // moments until the cut; not positive: none is planned, or it was
	cut    func()
	broken atomic.Bool // since the cut every write fails
	lazy   bool        // a bug: Sync does nothing
}

var errCut = errors.New("disk is gone")

// moment is one at which the cut may come.
func (e *cutEngine) moment() error {
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
func (e *cutEngine) during(op func() error) error {
	if err := e.moment(); err != nil {
		return err
	}
	if err := op(); err != nil {
		return err
	}
	return e.moment()
}

func (e *cutEngine) Apply(repr []byte) error {
	return e.during(func() error { return e.Engine.Apply(repr) })
}

func (e *cutEngine) Sync() error {
	yield(10)
	defer yield(10)
	return e.during(func() error {
		if e.lazy {
			return nil
		}
		return e.Engine.Sync()
	})
}

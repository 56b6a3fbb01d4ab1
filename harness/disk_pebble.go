package harness

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// pebbleDir is where a simulated store lies on its file system.
const pebbleDir = "store"

// newPebbleFS is a file system that holds an empty store. To copy one is cheaper
// than to make one.
var newPebbleFS = func() func() *vfs.MemFS {
	template := sync.OnceValue(func() *vfs.MemFS {
		fs, err := emptyPebble()
		if err != nil {
			panic(fmt.Sprintf("harness: make an empty Pebble store: %v", err))
		}
		return fs
	})
	return func() *vfs.MemFS { return template().CrashClone(vfs.CrashCloneCfg{}) }
}()

// emptyPebble makes the template: all of it is synced, or a copy would lack it.
func emptyPebble() (*vfs.MemFS, error) {
	fs := vfs.NewCrashableMem()
	if err := fs.MkdirAll(pebbleDir, 0o755); err != nil {
		return nil, err
	}
	root, err := fs.OpenDir("")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(root.Sync(), root.Close()); err != nil {
		return nil, err
	}
	e, err := openPebble(fs)
	if err != nil {
		return nil, err
	}
	return fs, e.Close()
}

func openPebble(fs vfs.FS) (engine.Engine, error) {
	return pebblestore.Open(pebbleDir, pebblestore.Options{
		FS: fs, CacheBytes: 1 << 20, MemTableBytes: 4 << 20, NoCompactions: true,
	})
}

// pebbleDisk is a disk with Pebble on a file system that forgets. Which unsynced
// batches survive is not left to chance: none do in the file system, and those
// that shall are applied again.
type pebbleDisk struct {
	mem    *vfs.MemFS
	fs     *crashfs.FS    // over mem, as engine sees it
	engine *trackedPebble // of the living process; nil: there is none
	again  [][]byte       // batches to apply at the next open
	zombie *trackedPebble // of the process that died last: its unwinding may still use it
}

func newPebbleDisk() disk {
	d := &pebbleDisk{}
	d.use(newPebbleFS())
	return d
}

// use makes mem the file system of the disk.
func (d *pebbleDisk) use(mem *vfs.MemFS) { d.mem, d.fs = mem, crashfs.New(mem, nil) }

// trackedPebble remembers the batches that a crash would lose.
type trackedPebble struct {
	engine.Engine
	unsynced [][]byte
	closed   bool
}

func (e *trackedPebble) Apply(repr []byte) error {
	if err := e.Engine.Apply(repr); err != nil {
		return err
	}
	e.unsynced = append(e.unsynced, bytes.Clone(repr))
	return nil
}

func (e *trackedPebble) Sync() error {
	if err := e.Engine.Sync(); err != nil {
		return err
	}
	e.unsynced = nil
	return nil
}

func (e *trackedPebble) Close() error {
	if e.closed {
		return nil
	}
	e.closed = true
	e.unsynced = nil
	return e.Engine.Close()
}

func (d *pebbleDisk) open(seam.Seams) (engine.Engine, error) {
	d.close()
	e, err := openPebble(d.fs)
	if err != nil {
		return nil, err
	}
	for _, repr := range d.again {
		if err := e.Apply(repr); err != nil {
			return nil, err
		}
	}
	if len(d.again) > 0 {
		if err := e.Sync(); err != nil {
			return nil, err
		}
	}
	d.again = nil
	d.engine = &trackedPebble{Engine: e}
	return d.engine, nil
}

func (d *pebbleDisk) unsynced() int {
	if d.engine == nil {
		return 0
	}
	return len(d.engine.unsynced)
}

func (d *pebbleDisk) crash(keep int) {
	if d.engine == nil {
		return
	}
	mem := d.mem.CrashClone(vfs.CrashCloneCfg{})
	d.again = d.engine.unsynced[:min(keep, len(d.engine.unsynced))]
	d.zombie, d.engine = d.engine, nil
	d.use(mem)
}

func (d *pebbleDisk) view() (*memstore.Store, error) {
	engine := engine.Engine(nil)
	if d.engine != nil && !d.engine.closed {
		engine = d.engine
	} else {
		e, err := d.open(seam.Seams{})
		if err != nil {
			return nil, err
		}
		defer d.close()
		engine = e
	}
	return copyOf(engine)
}

// copyOf is a map with the same rows as the engine.
func copyOf(e engine.Engine) (*memstore.Store, error) {
	it, err := e.NewIter(nil, nil)
	if err != nil {
		return nil, err
	}
	var b storage.Batch
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		b.Set(it.Key(), v)
	}
	if err := it.Close(); err != nil {
		return nil, err
	}
	mem := memstore.New()
	return mem, mem.Apply(b.Repr())
}

// close lets the engines go, without the flush of an orderly end. The engine of a dead
// process may have open iterators, about which Pebble complains; its later writes reach
// no file.
func (d *pebbleDisk) close() {
	for _, e := range []*trackedPebble{d.zombie, d.engine} {
		if e != nil && !e.closed {
			e.closed = true
			_ = e.Engine.(interface{ DB() *pebble.DB }).DB().Close()
		}
	}
	d.zombie, d.engine = nil, nil
}

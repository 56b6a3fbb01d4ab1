package harness

import (
	"fmt"
	"io"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// disk holds the store; it survives the processes of one simulation.
type disk interface {
	// open returns the engine for the next process, which has these seams.
	open(seams seam.Seams) (engine.Engine, error)
	// unsynced is the number of batches that a crash could lose now.
	unsynced() int
	// crash takes the disk from the process that died. The synced batches survive, and
	// the first keep of the others.
	crash(keep int)
	// tear is crash in the midst of a write: the seed chooses which blocks of the write
	// are on the disk. It returns how many of the unsynced batches survive. The shadow
	// was given all batches.
	tear(seed uint64, shadow *memstore.Store) (kept int, err error)
	// view is a copy of all that is visible now.
	view() (*memstore.Store, error)
	close()
}

// mapDisk is a disk on a map.
type mapDisk struct{ mem *memstore.Store }

func newMapDisk() disk { return &mapDisk{memstore.New()} }

func (d *mapDisk) open(seam.Seams) (engine.Engine, error) {
	d.mem = d.mem.Crash(keepAll) // opened again, because an earlier process may have closed it
	return d.mem, nil
}
func (d *mapDisk) unsynced() int  { return d.mem.Unsynced() }
func (d *mapDisk) crash(keep int) { d.mem = d.mem.Crash(keep) }
func (d *mapDisk) tear(seed uint64, _ *memstore.Store) (int, error) {
	kept := int(seed / 2 % uint64(d.mem.Unsynced()+1))
	d.crash(kept)
	return kept, nil
}
func (d *mapDisk) view() (*memstore.Store, error) { return d.mem.Crash(keepAll), nil }
func (d *mapDisk) close()                         {}

// guarded is an engine as one process sees it: after its death it can change
// nothing. It shows the batches to the checkers.
type guarded struct {
	engine.Engine
	p *machine.Process
	s *Sim
}

func (g *guarded) Get(key []byte) ([]byte, io.Closer, error) {
	g.p.Live()
	return g.Engine.Get(key)
}

func (g *guarded) NewIter(lower, upper []byte) (engine.Iterator, error) {
	g.p.Live()
	return g.Engine.NewIter(lower, upper)
}

func (g *guarded) Apply(repr []byte) error {
	g.p.Live()
	if g.s.failed(g.p) {
		return g.s.broken.err
	}
	g.s.gate.applied++
	if g.s.shadow != nil {
		if err := g.s.shadow.Apply(repr); err != nil {
			return err
		}
	}
	if err := g.Engine.Apply(repr); err != nil {
		return err
	}
	return g.s.breaks(g.p, atApply)
}

func (g *guarded) Sync() error {
	g.p.Live()
	if err := g.s.breaks(g.p, atSync); err != nil {
		return err
	}
	if err := g.Engine.Sync(); err != nil {
		return err
	}
	if g.s.shadow != nil && g.s.disk.unsynced() == 0 {
		_ = g.s.shadow.Sync()
	}
	return nil
}

func (g *guarded) Close() error {
	g.p.Live()
	if g.s.failed(g.p) {
		return g.s.broken.err
	}
	if g.s.shadow != nil {
		_ = g.s.shadow.Sync()
	}
	return g.Engine.Close()
}

// guardedLog is a guarded engine over a log.
type guardedLog struct {
	guarded
	log engine.Fenced
}

func (g *guardedLog) GiveUp() { g.log.GiveUp() }

func (g *guardedLog) Replaced() bool { return g.log.Replaced() }

func (g *guardedLog) Full() error { return g.log.Full() }

// guard returns an engine as the process p sees it.
func (s *Sim) guard(e engine.Engine, p *machine.Process) engine.Engine {
	g := guarded{e, p, s}
	if log, ok := e.(engine.Fenced); ok {
		return &guardedLog{g, log}
	}
	return &g
}

// storedState is a store opened over a copy of the stored rows, apart from every host.
type storedState = storage.Store

// openView opens a copy of the disk.
func openView(d disk, shards int) (*storedState, error) {
	mem, err := d.view()
	if err != nil {
		return nil, fmt.Errorf("copy the store: %w", err)
	}
	return storage.Open(storage.Options{Engine: mem, Shards: shards})
}

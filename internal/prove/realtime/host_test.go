package realtime

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// machine is where one host after the other runs.
type machine struct {
	t    testing.TB
	defs []object.Definition
	disk disk
	host *object.Host
}

func newMachine(t testing.TB, d disk, defs ...object.Definition) *machine {
	m := &machine{t: t, disk: d, defs: defs}
	m.open()
	return m
}

func (m *machine) open() {
	m.t.Helper()
	e, err := m.disk.open()
	if err != nil {
		m.t.Fatal(err)
	}
	m.host, err = object.Open(object.Options{
		Storage: storage.Options{Engine: e, Shards: 4},
		Logger:  slog.New(slog.DiscardHandler),
	}, m.defs...)
	if err != nil {
		m.t.Fatal(err)
	}
}

// close shuts the host down in order.
func (m *machine) close() {
	m.t.Helper()
	if err := m.host.Shutdown(context.Background()); err != nil {
		m.t.Error(err)
	}
}

func (m *machine) restart() {
	m.t.Helper()
	m.close()
	m.open()
}

// crash kills the host and opens the next on the synced bytes.
func (m *machine) crash() {
	m.t.Helper()
	left := m.disk.crash()
	_ = m.host.Shutdown(ended()) // its error does not matter
	m.disk = left
	m.open()
}

// disk survives the hosts of a machine.
type disk interface {
	open() (engine.Engine, error)
	crash() disk // with the synced bytes alone
}

// mapDisk is a disk on a map.
type mapDisk struct{ mem *memstore.Store }

func newMapDisk() disk { return &mapDisk{memstore.New()} }

func (d *mapDisk) open() (engine.Engine, error) {
	d.mem = d.mem.Crash(0) // opened again, because it may have been closed
	return d.mem, nil
}

func (d *mapDisk) crash() disk { return &mapDisk{d.mem.Crash(0)} }

// pebbleDisk is a disk with Pebble. Its compactions would tick all the time.
type pebbleDisk struct{ fs *vfs.MemFS }

func newPebbleDisk() disk { return pebbleDisk{vfs.NewCrashableMem()} }

func (d pebbleDisk) open() (engine.Engine, error) {
	return pebblestore.Open("store", pebblestore.Options{FS: d.fs, CacheBytes: 1 << 20, MemTableBytes: 1 << 20, NoCompactions: true})
}

func (d pebbleDisk) crash() disk { return pebbleDisk{d.fs.CrashClone(vfs.CrashCloneCfg{})} }

// ended is a context that is over.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// until lets time pass up to a moment, and all that comes due by then happen.
func until(at time.Time) {
	time.Sleep(time.Until(at))
	synctest.Wait()
}

// Package fulldisk has a file system in memory that tests fill.
package fulldisk

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FS is an empty file system in memory that tells how much space is free as a test wants it. Its
// methods may be called concurrently, because Pebble asks from goroutines of its own.
type FS struct {
	vfs.FS
	freeBytes atomic.Uint64
}

// New returns a file system with a TiB free.
func New() *FS {
	d := &FS{FS: vfs.NewMem()}
	d.SetFull(false)
	return d
}

// SetFull says whether nothing is free from now on, or a TiB.
func (d *FS) SetFull(full bool) {
	if full {
		d.SetFreeBytes(0)
		return
	}
	d.SetFreeBytes(1 << 40)
}

// SetFreeBytes says how much is free from now on.
func (d *FS) SetFreeBytes(n uint64) { d.freeBytes.Store(n) }

// GetDiskUsage tells the free space.
func (d *FS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.freeBytes.Load()}, nil
}

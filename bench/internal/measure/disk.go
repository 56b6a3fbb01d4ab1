package measure

import (
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is the operating system's file system, with counts of writes and syncs.
type Disk struct {
	vfs.FS
	logBytes, allBytes, syncs atomic.Uint64
	tables                    atomic.Int64
}

// NewDisk makes a Disk with counts of zero.
func NewDisk() *Disk { return &Disk{FS: vfs.Default} }

// Meters are the counts of the disk by the name of their cost.
func (d *Disk) Meters() Meters {
	return Meters{"log bytes": d.logBytes.Load, "syncs": d.syncs.Load, "written bytes": d.allBytes.Load}
}

// Written is how many bytes were written to files of any kind.
func (d *Disk) Written() uint64 { return d.allBytes.Load() }

// Compacting reports whether a table is being written: by a flush, a compaction
// or both.
func (d *Disk) Compacting() bool { return d.tables.Load() > 0 }

// Add adds the counts of another disk.
func (d *Disk) Add(other *Disk) {
	d.logBytes.Add(other.logBytes.Load())
	d.allBytes.Add(other.allBytes.Load())
	d.syncs.Add(other.syncs.Load())
}

func (d *Disk) count(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	c := &countedFile{File: f, disk: d, log: strings.HasSuffix(name, ".log"), table: strings.HasSuffix(name, ".sst")}
	if c.table {
		d.tables.Add(1)
	}
	return c, nil
}

// Create implements vfs.FS.
func (d *Disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	return d.count(name, f, err)
}

// OpenReadWrite implements vfs.FS.
func (d *Disk) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.OpenReadWrite(name, c, o...)
	return d.count(name, f, err)
}

// ReuseForWrite implements vfs.FS.
func (d *Disk) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(from, to, c)
	return d.count(to, f, err)
}

// Unwrap implements vfs.FS.
func (d *Disk) Unwrap() vfs.FS { return d.FS }

// countedFile counts its writes and syncs. Only syncs of logs are counted: they are the
// ones that commits wait for.
type countedFile struct {
	vfs.File
	disk  *Disk
	log   bool
	table bool
}

func (f *countedFile) wrote(n int) {
	f.disk.allBytes.Add(uint64(n))
	if f.log {
		f.disk.logBytes.Add(uint64(n))
	}
}

func (f *countedFile) synced() {
	if f.log {
		f.disk.syncs.Add(1)
	}
}

func (f *countedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.wrote(n)
	return n, err
}

func (f *countedFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	f.wrote(n)
	return n, err
}

func (f *countedFile) Sync() error {
	f.synced()
	return f.File.Sync()
}

func (f *countedFile) SyncData() error {
	f.synced()
	return f.File.SyncData()
}

func (f *countedFile) Close() error {
	if f.table {
		f.disk.tables.Add(-1)
	}
	return f.File.Close()
}

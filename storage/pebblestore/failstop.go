package pebblestore

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ending is the end of an engine: the first error after which it must not
// acknowledge anything.
type ending struct {
	cause atomic.Pointer[error]
	told  atomic.Pointer[func(error)] // called at the end; nil: not set yet
}

// fail ends the engine, unless it has ended.
func (e *ending) fail(err error) {
	if e.cause.CompareAndSwap(nil, &err) {
		e.tell()
	}
}

// tell calls the function of onDeath, once there is both an end and the function.
func (e *ending) tell() {
	if err, told := e.err(), e.told.Load(); err != nil && told != nil {
		(*told)(err)
	}
}

// onDeath calls f when the engine ends, also by work of Pebble in the background, or
// now if it has ended. f may be called more than once, and under locks of Pebble.
func (e *ending) onDeath(f func(error)) {
	e.told.Store(&f)
	e.tell()
}

// err returns the error that ended the engine, or nil.
func (e *ending) err() error {
	if p := e.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// failStopFS is the file system of a Pebble that must stop at the first failed
// write of its log, its manifest or a directory. Pebble itself throws or keeps a
// lock for ever where such a write fails. So it never learns of it:
//
//  1. The failure is stored in end, before the failed call returns.
//  2. From then on nothing of the store on disk changes. Pebble's writes go to files
//     in memory or nowhere, and succeed.
//  3. So each call into Pebble returns, and Close ends its goroutines. The caller
//     looks at end after the call and before the answer.
//
// To the next opening it is as if the power had failed at the failed write.
// All that holds for the files of the store's own directory. A checkpoint makes files elsewhere,
// which are no part of the store: their failures are those of the checkpoint.
// Failed writes of tables do reach Pebble, which tries them again by itself; how
// often is bounded by logger.background.
type failStopFS struct {
	vfs.FS
	dir  string // of the store
	end  *ending
	void vfs.FS // files made after the end
	sums *sums
	// beforeTable is Options.BeforeTable; nil: there is none.
	beforeTable func() error

	lastRead atomic.Pointer[string] // the file opened last for reading
	outside  atomic.Pointer[error]  // the first failed sync of a directory that is not the store's

	before atomic.Pointer[func(bytes int) error] // of the Checkpoint that is being made; nil: there is none
}

// beforeOutside is called before so many bytes of a checkpoint are written. It returns the error that ends the checkpoint, or nil.
func (fsys *failStopFS) beforeOutside(bytes int) error {
	if before := fsys.before.Load(); before != nil {
		return (*before)(bytes)
	}
	return nil
}

// outsideFile is a file of a checkpoint, which may have to wait before a write, or ends there.
type outsideFile struct {
	vfs.File
	fsys *failStopFS
}

func (f *outsideFile) Write(p []byte) (int, error) {
	if err := f.fsys.beforeOutside(len(p)); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

// outsideDir is a directory that is not the store's. Pebble panics where a sync of one fails, so
// the failure is kept for the caller of Pebble.
type outsideDir struct {
	vfs.File
	fsys *failStopFS
}

func (d *outsideDir) Sync() error {
	if err := d.File.Sync(); err != nil {
		d.fsys.outside.CompareAndSwap(nil, &err)
	}
	return nil
}

// takeOutside returns the failed sync of a directory that is not the store's, once, or nil.
func (fsys *failStopFS) takeOutside() error {
	if p := fsys.outside.Swap(nil); p != nil {
		return *p
	}
	return nil
}

func newFailStopFS(fsys vfs.FS, dir string, end *ending, sums *sums) *failStopFS {
	return &failStopFS{FS: fsys, dir: dir, end: end, void: vfs.NewMem(), sums: sums}
}

// isOwn reports whether the file, or the directory, is the store's.
func (fsys *failStopFS) isOwn(name string) bool {
	return name == fsys.dir || fsys.PathDir(name) == fsys.PathDir(fsys.PathJoin(fsys.dir, "x"))
}

// isTable reports whether Pebble can live with the loss of the file, because it still
// has the rows in its log or in other tables.
func isTable(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

// guard makes a file with open, or in memory after the end.
func (fsys *failStopFS) guard(name string, open func() (vfs.File, error)) (vfs.File, error) {
	if !fsys.isOwn(name) {
		if err := fsys.beforeOutside(0); err != nil {
			return nil, err
		}
		f, err := open()
		if err != nil {
			return nil, err
		}
		return &outsideFile{f, fsys}, nil
	}
	if fsys.beforeTable != nil && isTable(name) && fsys.end.err() == nil {
		if err := fsys.beforeTable(); err != nil {
			fsys.end.fail(err)
		}
	}
	if fsys.end.err() == nil {
		f, err := open()
		if isTable(name) {
			return f, err
		}
		if err == nil {
			return fsys.file(f, name), nil
		}
		fsys.end.fail(err)
	}
	if err := fsys.void.MkdirAll(fsys.PathDir(name), 0o755); err != nil {
		return nil, err
	}
	return fsys.void.Create(name, vfs.WriteCategoryUnspecified)
}

func (fsys *failStopFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return fsys.guard(name, func() (vfs.File, error) { return fsys.FS.Create(name, c) })
}

func (fsys *failStopFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return fsys.guard(to, func() (vfs.File, error) {
		if err := fsys.sums.gone(fsys.PathBase(from)); err != nil {
			return nil, err
		}
		return fsys.FS.ReuseForWrite(from, to, c)
	})
}

func (fsys *failStopFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return fsys.guard(name, func() (vfs.File, error) { return fsys.FS.OpenReadWrite(name, c, opts...) })
}

// OpenDir opens a directory for syncing.
func (fsys *failStopFS) OpenDir(name string) (vfs.File, error) {
	f, err := fsys.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	if !fsys.isOwn(name) {
		return &outsideDir{f, fsys}, nil
	}
	return fsys.file(f, ""), nil
}

func (fsys *failStopFS) file(f vfs.File, name string) vfs.File {
	if base := fsys.PathBase(name); hasSum(base) {
		return &summedFile{failStopFile{f, fsys.end}, base, fsys.sums, sum{}}
	}
	return &failStopFile{f, fsys.end}
}

func (fsys *failStopFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if fsys.inVoid(name) {
		return fsys.void.Open(name, opts...)
	}
	fsys.lastRead.Store(&name)
	return fsys.FS.Open(name, opts...)
}

// blame adds to an error of reading the name of the file that was read last, if
// the error does not name one: Pebble reads its log, manifest and options one
// after the other, and does not say which of them is damaged.
func (fsys *failStopFS) blame(err error) error {
	name := fsys.lastRead.Load()
	if name == nil || strings.Contains(err.Error(), fsys.PathBase(*name)) {
		return err
	}
	return fmt.Errorf("%w (the last file read was %s)", err, *name)
}

func (fsys *failStopFS) Stat(name string) (vfs.FileInfo, error) {
	if fsys.inVoid(name) {
		return fsys.void.Stat(name)
	}
	return fsys.FS.Stat(name)
}

// Remove and RemoveAll may fail: Pebble goes on with the files it could not remove.
func (fsys *failStopFS) Remove(name string) error {
	if !fsys.isOwn(name) {
		return fsys.FS.Remove(name)
	}
	return fsys.change(name, func(to vfs.FS) error {
		if err := fsys.sums.gone(fsys.PathBase(name)); err != nil {
			fsys.end.fail(err)
			return nil
		}
		return to.Remove(name)
	})
}

func (fsys *failStopFS) RemoveAll(name string) error {
	if !fsys.isOwn(name) {
		return fsys.FS.RemoveAll(name)
	}
	return fsys.change(name, func(to vfs.FS) error { return to.RemoveAll(name) })
}

// Rename and Link may not fail.
func (fsys *failStopFS) Rename(from, to string) error {
	if !fsys.isOwn(to) {
		return fsys.FS.Rename(from, to)
	}
	return fsys.mustChange(from, func(in vfs.FS) error { return in.Rename(from, to) })
}

func (fsys *failStopFS) Link(from, to string) error {
	if !fsys.isOwn(to) {
		if err := fsys.beforeOutside(0); err != nil {
			return err
		}
		return fsys.FS.Link(from, to)
	}
	return fsys.mustChange(from, func(in vfs.FS) error { return in.Link(from, to) })
}

// change runs a change of names in the store, in memory, or nowhere.
func (fsys *failStopFS) change(name string, f func(vfs.FS) error) error {
	switch {
	case fsys.end.err() == nil:
		return f(fsys.FS)
	case fsys.inVoid(name):
		return f(fsys.void)
	}
	return nil
}

func (fsys *failStopFS) mustChange(name string, f func(vfs.FS) error) error {
	if err := fsys.change(name, f); err != nil {
		fsys.end.fail(err)
	}
	return nil
}

func (fsys *failStopFS) Unwrap() vfs.FS { return fsys.FS }

func (fsys *failStopFS) inVoid(name string) bool {
	if fsys.end.err() == nil {
		return false
	}
	_, err := fsys.void.Stat(name)
	return !errors.Is(err, os.ErrNotExist)
}

// failStopFile is a file or directory. Its first failed write ends the engine.
type failStopFile struct {
	vfs.File
	end *ending
}

// do runs a write, unless the end has come, and hides its failure.
func (f *failStopFile) do(write func() error) {
	if f.end.err() == nil {
		if err := write(); err != nil {
			f.end.fail(err)
		}
	}
}

func (f *failStopFile) Write(p []byte) (int, error) {
	f.do(func() error { _, err := f.File.Write(p); return err })
	return len(p), nil
}

func (f *failStopFile) WriteAt(p []byte, off int64) (int, error) {
	f.do(func() error { _, err := f.File.WriteAt(p, off); return err })
	return len(p), nil
}

func (f *failStopFile) Sync() error {
	f.do(f.File.Sync)
	return nil
}

func (f *failStopFile) SyncData() error {
	f.do(f.File.SyncData)
	return nil
}

func (f *failStopFile) SyncTo(length int64) (full bool, err error) {
	f.do(func() error { full, err = f.File.SyncTo(length); return err })
	return full, nil
}

func (f *failStopFile) Close() error {
	err := f.File.Close()
	f.do(func() error { return err })
	return nil
}

// summedFile is a log or manifest. Its sum is stored in the sums file.
type summedFile struct {
	failStopFile
	name    string
	sums    *sums
	written sum
}

func (f *summedFile) Write(p []byte) (int, error) {
	f.written = f.written.of(p) // before the write, which may change p
	return f.failStopFile.Write(p)
}

// Sync does not return before the sum of a manifest is durable too.
func (f *summedFile) Sync() error {
	now := f.written
	f.do(func() error {
		if err := f.File.Sync(); err != nil || !isManifest(f.name) {
			return err
		}
		return f.sums.synced(f.name, now)
	})
	return nil
}

// SyncData does not return before it is stored that there is this log.
func (f *summedFile) SyncData() error {
	f.do(func() error {
		if err := f.File.SyncData(); err != nil || !isLog(f.name) {
			return err
		}
		return f.sums.begun(f.name)
	})
	return nil
}

// Close stores the sum of a log, all of which has been synced.
func (f *summedFile) Close() error {
	f.do(func() error {
		if !isLog(f.name) {
			return nil
		}
		return f.sums.finished(f.name, f.written)
	})
	return f.failStopFile.Close()
}

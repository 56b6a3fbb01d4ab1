package crashfs

import (
	"fmt"
	"maps"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Op is an operation that changes a file system.
type Op struct {
	Index int    // counts from 0
	Kind  string // such as "write"
	Path  string
}

func (op Op) String() string { return fmt.Sprintf("operation %d: %s %s", op.Index, op.Kind, op.Path) }

// FS calls a function before each operation that is about to change the file
// system under it. An error of the function is the operation's, which then does
// nothing. Operations run one at a time, so that the function sees a moment at
// which none is half done.
type FS struct {
	vfs.FS
	mu     sync.Mutex
	ops    int
	before func(Op) error
	synced map[string]int64 // how much of each file was synced; absent: all that was there at the start
	fresh  map[string]bool  // names that stand for another file since their directory was synced
}

// New is an FS over fsys, all of which is taken to be synced. A nil before does
// nothing.
func New(fsys vfs.FS, before func(Op) error) *FS {
	f := &FS{FS: fsys, synced: make(map[string]int64), fresh: make(map[string]bool)}
	f.SetBefore(before)
	return f
}

// SetBefore sets the function that is called before each operation.
func (f *FS) SetBefore(before func(Op) error) {
	if before == nil {
		before = func(Op) error { return nil }
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = before
}

// Count is the number of operations so far.
func (f *FS) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// op runs do as one operation.
func (f *FS) op(kind, path string, do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	op := Op{f.ops, kind, path}
	f.ops++
	if err := f.before(op); err != nil {
		return &os.PathError{Op: kind, Path: path, Err: err}
	}
	return do()
}

// open runs do as an operation that makes or opens the file at path.
func (f *FS) open(kind, path string, do func() (vfs.File, error)) (opened vfs.File, err error) {
	err = f.op(kind, path, func() error {
		opened, err = do()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &file{opened, f, path}, nil
}

func (f *FS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open("create", name, func() (vfs.File, error) {
		f.created(name)
		return f.FS.Create(name, c)
	})
}

func (f *FS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.open("open", name, func() (vfs.File, error) {
		if _, err := f.FS.Stat(name); err != nil {
			f.created(name)
		}
		return f.FS.OpenReadWrite(name, c, opts...)
	})
}

func (f *FS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.open("reuse", to, func() (vfs.File, error) {
		f.renamed(from, to)
		return f.FS.ReuseForWrite(from, to, c)
	})
}

// OpenDir changes nothing, but the directory that it opens can be synced.
func (f *FS) OpenDir(name string) (vfs.File, error) {
	dir, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &file{dir, f, name + "/"}, nil
}

func (f *FS) Link(from, to string) error {
	return f.op("link", to, func() error {
		f.linked(from, to)
		return f.FS.Link(from, to)
	})
}

func (f *FS) Rename(from, to string) error {
	return f.op("rename", to, func() error {
		f.renamed(from, to)
		return f.FS.Rename(from, to)
	})
}

func (f *FS) created(name string) { f.synced[name], f.fresh[name] = 0, true }

// linked makes to a second name of the file from. A file that was there from the start
// and not synced since counts as synced to its end.
func (f *FS) linked(from, to string) {
	length, ok := f.synced[from]
	if info, err := f.FS.Stat(from); !ok && err == nil {
		length = info.Size()
	}
	f.synced[to], f.fresh[to] = length, true
}

func (f *FS) renamed(from, to string) {
	f.linked(from, to)
	delete(f.synced, from)
}

func (f *FS) Remove(name string) error {
	return f.op("remove", name, func() error { return f.FS.Remove(name) })
}

func (f *FS) RemoveAll(name string) error {
	return f.op("remove all", name, func() error { return f.FS.RemoveAll(name) })
}

func (f *FS) MkdirAll(name string, perm os.FileMode) error {
	return f.op("mkdir", name, func() error { return f.FS.MkdirAll(name, perm) })
}

func (f *FS) Unwrap() vfs.FS { return f.FS }

// file is a file or directory of an FS.
type file struct {
	vfs.File
	fsys *FS
	path string
}

func (f *file) Write(p []byte) (n int, err error) {
	err = f.fsys.op("write", f.path, func() error {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.fsys.op("write", f.path, func() error {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

func (f *file) Sync() error { return f.sync(f.File.Sync) }

func (f *file) SyncData() error { return f.sync(f.File.SyncData) }

func (f *file) SyncTo(length int64) (full bool, err error) {
	err = f.sync(func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

func (f *file) sync(sync func() error) error {
	return f.fsys.op("sync", f.path, func() error {
		if err := sync(); err != nil {
			return err
		}
		info, err := f.File.Stat()
		switch {
		case err != nil:
			return err
		case info.IsDir():
			maps.DeleteFunc(f.fsys.fresh, func(name string, _ bool) bool { return f.fsys.PathDir(name)+"/" == f.path })
		default:
			f.fsys.synced[f.path] = info.Size()
		}
		return nil
	})
}

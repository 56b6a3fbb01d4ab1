package storagetest

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

// hookFS calls before with each operation that is about to change fsys. An error
// of before is the operation's, which then does nothing. Operations run one at a
// time, so that before sees a moment at which none is half done.
type hookFS struct {
	vfs.FS
	mu     sync.Mutex
	ops    int
	before func(Op) error
	synced map[string]int64 // how much of each file was synced
	fresh  map[string]bool  // names that stand for another file since their directory was synced
}

func newHookFS(fsys vfs.FS, before func(Op) error) *hookFS {
	return &hookFS{FS: fsys, before: before, synced: make(map[string]int64), fresh: make(map[string]bool)}
}

// count is the number of operations so far.
func (h *hookFS) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ops
}

// op runs f as one operation.
func (h *hookFS) op(kind, path string, f func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	op := Op{h.ops, kind, path}
	h.ops++
	if err := h.before(op); err != nil {
		return &os.PathError{Op: kind, Path: path, Err: err}
	}
	return f()
}

// open runs f as an operation that makes or opens the file at path.
func (h *hookFS) open(kind, path string, f func() (vfs.File, error)) (file vfs.File, err error) {
	err = h.op(kind, path, func() error {
		file, err = f()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &hookFile{file, h, path}, nil
}

func (h *hookFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return h.open("create", name, func() (vfs.File, error) {
		delete(h.synced, name)
		h.fresh[name] = true
		return h.FS.Create(name, c)
	})
}

func (h *hookFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return h.open("open", name, func() (vfs.File, error) { return h.FS.OpenReadWrite(name, c, opts...) })
}

func (h *hookFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return h.open("reuse", to, func() (vfs.File, error) {
		h.renamed(from, to)
		return h.FS.ReuseForWrite(from, to, c)
	})
}

// OpenDir changes nothing, but what it opens can be synced.
func (h *hookFS) OpenDir(name string) (vfs.File, error) {
	f, err := h.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &hookFile{f, h, name + "/"}, nil
}

func (h *hookFS) Link(from, to string) error {
	return h.op("link", to, func() error {
		h.synced[to], h.fresh[to] = h.synced[from], true
		return h.FS.Link(from, to)
	})
}

func (h *hookFS) Rename(from, to string) error {
	return h.op("rename", to, func() error {
		h.renamed(from, to)
		return h.FS.Rename(from, to)
	})
}

func (h *hookFS) renamed(from, to string) {
	h.synced[to], h.fresh[to] = h.synced[from], true
	delete(h.synced, from)
}

func (h *hookFS) Remove(name string) error {
	return h.op("remove", name, func() error { return h.FS.Remove(name) })
}

func (h *hookFS) RemoveAll(name string) error {
	return h.op("remove all", name, func() error { return h.FS.RemoveAll(name) })
}

func (h *hookFS) MkdirAll(name string, perm os.FileMode) error {
	return h.op("mkdir", name, func() error { return h.FS.MkdirAll(name, perm) })
}

func (h *hookFS) Unwrap() vfs.FS { return h.FS }

// hookFile is a file or directory of a hookFS.
type hookFile struct {
	vfs.File
	fsys *hookFS
	path string
}

func (f *hookFile) Write(p []byte) (n int, err error) {
	err = f.fsys.op("write", f.path, func() error {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *hookFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.fsys.op("write", f.path, func() error {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

func (f *hookFile) Sync() error { return f.sync(f.File.Sync) }

func (f *hookFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f *hookFile) SyncTo(length int64) (full bool, err error) {
	err = f.sync(func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

func (f *hookFile) sync(sync func() error) error {
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

func (h *hookFS) setBefore(before func(Op) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before = before
}

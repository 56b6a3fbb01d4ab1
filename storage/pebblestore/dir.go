package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrIsFile is the error of Dir.Make if the path is a file.
var ErrIsFile = errors.New("is a file")

// Dir is the directory of a store on a file system. It serves package storage for
// the small files beside the database. Names are those of files in the directory. A
// Dir is a value without state, and its methods may be called concurrently.
type Dir struct {
	FS   vfs.FS
	Path string
}

// File is an open file of a Dir.
type File = vfs.File

// FS is a file system: that of the operating system, or one of Pebble's package vfs for tests and simulations.
type FS = vfs.FS

// Dir returns the directory called path on the file system of o.
func (o Options) Dir(path string) Dir { return Dir{fileSystem(o.FS), path} }

// fileSystem is fsys, or that of the operating system for nil.
func fileSystem(fsys vfs.FS) vfs.FS {
	if fsys == nil {
		return vfs.Default
	}
	return fsys
}

// Join returns the path of a file.
func (d Dir) Join(name string) string { return d.FS.PathJoin(d.Path, name) }

// Make makes the directory and its parents if they are absent, and makes each of
// them durable.
func (d Dir) Make() error {
	info, err := d.FS.Stat(d.Path)
	switch {
	case err == nil && !info.IsDir():
		return ErrIsFile
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	var made []Dir // the directories that get an entry, innermost first
	for path := d.Path; errors.Is(err, fs.ErrNotExist); {
		parent := d.FS.PathDir(path)
		if parent == path {
			break
		}
		made = append(made, Dir{d.FS, parent})
		path = parent
		_, err = d.FS.Stat(path)
	}
	if err := d.FS.MkdirAll(d.Path, 0o755); err != nil {
		return err
	}
	for _, parent := range made {
		if err := parent.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// Real returns the directory under the one path that all its other names lead to, so
// that two openings by different names meet at the lock. Only the files of the
// operating system have other names, by symbolic links and relative paths.
func (d Dir) Real() (Dir, error) {
	if d.FS != vfs.Default {
		return d, nil
	}
	path, err := filepath.EvalSymlinks(d.Path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	return Dir{d.FS, path}, err
}

// List returns the names of the files.
func (d Dir) List() ([]string, error) { return d.FS.List(d.Path) }

// Read returns the content of a file. The error wraps fs.ErrNotExist if it is absent.
func (d Dir) Read(name string) (string, error) { return readFile(d.FS, d.Join(name)) }

func readFile(fsys vfs.FS, path string) (string, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(f)
	return string(text), errors.Join(err, f.Close())
}

// Write makes a file, or replaces the content of one, and syncs it. A new file is
// durable once the directory is synced too.
func (d Dir) Write(name, text string) error {
	f, err := d.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Create makes a file, or makes it anew, to be written. Its name is durable after Sync.
func (d Dir) Create(name string) (File, error) {
	return d.FS.Create(d.Join(name), vfs.WriteCategoryUnspecified)
}

// CreateFlowing is Create, and the system writes the file to the disk as it grows, because a sync of
// another file would otherwise wait for all of it together.
func (d Dir) CreateFlowing(name string) (File, error) {
	f, err := d.Create(name)
	if err != nil {
		return nil, err
	}
	return &flowing{File: f, path: d.Join(name)}, nil
}

// flowing is a file of CreateFlowing.
type flowing struct {
	File
	path  string
	bytes int64
}

func (f *flowing) Write(b []byte) (n int, err error) {
	n, err = f.File.Write(b)
	f.bytes += int64(n)
	if err == nil {
		if _, err = f.SyncTo(f.bytes); err != nil {
			err = fmt.Errorf("sync %s: %w", f.path, err) // that of the system has no path
		}
	}
	return n, err
}

// Update opens a file that exists for reading and writing.
func (d Dir) Update(name string) (File, error) {
	return d.FS.OpenReadWrite(d.Join(name), vfs.WriteCategoryUnspecified)
}

// Rename gives a file another name, which is durable once the directory is synced.
func (d Dir) Rename(from, to string) error { return d.FS.Rename(d.Join(from), d.Join(to)) }

// Sync makes the names of the files durable.
func (d Dir) Sync() error {
	path := d.Path
	if path == "" {
		path = "."
	}
	f, err := d.FS.OpenDir(path)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}

// FreeBytes returns the free space of the disk. The error is that of a file system
// that cannot tell.
func (d Dir) FreeBytes() (uint64, error) {
	u, err := d.FS.GetDiskUsage(d.Path)
	return u.AvailBytes, err
}

// CopyBytes is how much space a copy of the files takes in a directory elsewhere: all but the
// tables, which are linked, or all if that is on another disk, and the newest log twice, because it is there twice while it is cut.
func (d Dir) CopyBytes(elsewhere Dir) (sizeBytes uint64, err error) {
	names, err := d.List()
	if err != nil {
		return 0, err
	}
	there, err := d.FS.Stat(elsewhere.Path)
	if err != nil {
		return 0, err
	}
	newest, _, err := newestLog(d.FS, d.Path)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		info, err := d.FS.Stat(d.Join(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return 0, err
		}
		if !isTable(name) || info.DeviceID() != there.DeviceID() {
			sizeBytes += uint64(info.Size())
		}
		if d.Join(name) == newest {
			sizeBytes += uint64(info.Size())
		}
	}
	return sizeBytes, nil
}

// IsFull reports whether err is that of a disk, or of a quota, without space.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

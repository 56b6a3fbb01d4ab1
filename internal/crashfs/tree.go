package crashfs

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Tree is the content of a file system: the bytes of each file, not nil, and nil for
// each directory.
type Tree map[string][]byte

// Read is the content of fsys, also the unsynced bytes. It panics on an error, because
// fsys is in memory.
func Read(fsys *vfs.MemFS) Tree {
	t := make(Tree)
	if err := t.read(fsys, ""); err != nil {
		panic(fmt.Sprintf("torn: read a file system in memory: %v", err))
	}
	return t
}

func (t Tree) read(fsys *vfs.MemFS, dir string) error {
	entries, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := fsys.PathJoin(dir, entry)
		info, err := fsys.Stat(name)
		if err != nil {
			return err
		}
		if info.IsDir() {
			t[name] = nil
			err = t.read(fsys, name)
		} else {
			t[name], err = readFile(fsys, name, info.Size())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readFile(fsys *vfs.MemFS, name string, sizeBytes int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	data := make([]byte, sizeBytes)
	_, err = io.ReadFull(f, data)
	return data, errors.Join(err, f.Close())
}

// Write makes a file system that holds t, all of it synced. Without its directory a
// file is missing too.
func (t Tree) Write() (*vfs.MemFS, error) {
	fsys := vfs.NewCrashableMem()
	dirs := []string{""}
	var buf []byte
	for _, name := range slices.Sorted(maps.Keys(t)) { // a directory before its files
		dir := fsys.PathDir(name)
		if !slices.Contains(dirs, dir) && dir != "." {
			continue
		}
		var err error
		if data := t[name]; data == nil {
			dirs = append(dirs, name)
			err = fsys.MkdirAll(name, 0o755)
		} else {
			buf = append(buf[:0], data...) // because Write may change its argument
			err = writeFile(fsys, name, buf)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, dir := range dirs {
		if err := syncDir(fsys, dir); err != nil {
			return nil, err
		}
	}
	return fsys, nil
}

func writeFile(fsys vfs.FS, name string, data []byte) error {
	f, err := fsys.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(fsys vfs.FS, name string) error {
	d, err := fsys.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

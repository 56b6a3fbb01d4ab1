package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrReadOnly is the error of each change of a store that OpenReadOnly has opened.
var ErrReadOnly = errors.New("storage: store is open for reading only")

// OpenReadOnly opens the Pebble database in dir for reading and changes no file: the log is
// replayed in memory, and nothing is flushed, compacted or removed. Apply returns ErrReadOnly;
// Sync and Close write nothing. It makes the same checks as Open and ignores Options.Lock and
// Options.MustExist: the database must exist, and the caller holds Dir.LockShared.
func OpenReadOnly(dir string, o Options) (*Store, error) {
	o.FS, o.Lock, o.MustExist, o.readOnly = readOnlyFS{fileSystem(o.FS)}, nil, true, true
	manifest, err := findManifest(dir, o)
	if err != nil {
		return nil, err
	}
	return open(dir, manifest, o)
}

// readOnlyFS refuses each change of a file, so that no bug and no background work of Pebble
// can change a directory that is only read.
type readOnlyFS struct{ vfs.FS }

// refused is the error of a change of a file.
func refused(name string) error { return fmt.Errorf("%w: change %s", ErrReadOnly, name) }

func (readOnlyFS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, refused(name)
}

func (readOnlyFS) Link(_, to string) error { return refused(to) }

func (readOnlyFS) OpenReadWrite(name string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	return nil, refused(name)
}

func (readOnlyFS) Remove(name string) error { return refused(name) }

func (readOnlyFS) RemoveAll(name string) error { return refused(name) }

func (readOnlyFS) Rename(_, to string) error { return refused(to) }

func (readOnlyFS) ReuseForWrite(_, to string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, refused(to)
}

func (readOnlyFS) MkdirAll(name string, _ os.FileMode) error { return refused(name) }

// Lock takes no lock, because Pebble would write the lock file. The caller of OpenReadOnly
// has the lock.
func (readOnlyFS) Lock(string) (io.Closer, error) { return unlocked{}, nil }

func (fsys readOnlyFS) Unwrap() vfs.FS { return fsys.FS }

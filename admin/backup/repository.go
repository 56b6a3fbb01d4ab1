package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

var (
	// ErrNoRepository: the directory holds no repository.
	ErrNoRepository = errors.New("backup: not a repository")
	// ErrNoSnapshot: the repository has no snapshot of the name, or none that is verified, or those of
	// several stores and no name was given.
	ErrNoSnapshot = errors.New("backup: no such snapshot")
	// ErrDamaged: a file of the repository is not as it was written. The error names it.
	ErrDamaged = errors.New("backup: damaged")
	// ErrNotEmpty: the directory to restore into is not empty.
	ErrNotEmpty = errors.New("backup: the directory is not empty")
)

const (
	formatFile   = "HOLDFAST-REPOSITORY"
	formatText   = "holdfast repository\nformat 1\n"
	blobsDir     = "blobs"
	snapshotsDir = "snapshots"
	scratchDir   = "scratch"
	newSuffix    = ".new"             // of a file that is being written
	copyName     = "copy" + newSuffix // a blob without a name, because its hash is known at its end; the next Create writes it anew, or Clean removes it
)

// Repository is a directory with snapshots of stores, see Open. Its methods may be called from
// any goroutine. Those that change snapshots exclude one another and Verify and Restore, in this
// process and in others: they return storage.ErrLocked at once, unless
// storage.Options.WaitForLock is set.
type Repository struct {
	root pebblestore.Dir
	o    storage.Options // of the stores
	rate atomic.Int64    // of Create in bytes a second; 0: no limit
}

// Open names a repository and touches no file. The directory need not exist: Create makes it.
// It uses the Seams of o, its file system, caches and WaitForLock, for the repository and for
// stores, and neither Dir nor Engine.
func Open(dir string, o storage.Options) (*Repository, error) {
	if dir == "" {
		return nil, errors.New("backup: name the directory of the repository")
	}
	o.Dir, o.Engine, o.Shards = "", nil, 0
	o.Seams = o.Seams.WithDefaults()
	r := &Repository{root: o.Pebble.Dir(dir), o: o}
	r.rate.Store(DefaultRate)
	return r, nil
}

// now is the time, as it is stored.
func (r *Repository) now() time.Time { return r.o.Seams.Clock.Now().Round(0).UTC() }

// dir is a directory in the repository.
func (r *Repository) dir(name string) pebblestore.Dir {
	return pebblestore.Dir{FS: r.root.FS, Path: r.root.Join(name)}
}

// lock locks the repository, which must exist, until the returned closer is closed: for a reader,
// or for one that changes it.
func (r *Repository) lock(shared bool) (io.Closer, error) {
	if err := r.exists(); err != nil {
		return nil, err
	}
	return r.take(shared)
}

// take locks the directory, which may hold anything.
func (r *Repository) take(shared bool) (io.Closer, error) {
	dir, err := r.root.Real()
	if err != nil {
		return nil, wrap(err)
	}
	lock, err := storage.LockDir(r.o, dir.Path, shared)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	return lock, nil
}

// exists returns nil if the directory is a repository that this package reads.
func (r *Repository) exists() error {
	text, err := r.root.Read(formatFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s has no %s: name the directory of a repository", ErrNoRepository, r.root.Path, formatFile)
	case err != nil:
		return wrap(err)
	case text != formatText && strings.HasPrefix(text, "holdfast repository\nformat "):
		return fmt.Errorf("%w: %s is %q, this program reads format 1: use the program that wrote it", ErrNoRepository, r.root.Join(formatFile), text)
	case text != formatText:
		return fmt.Errorf("%w: %s is no format file of a repository", ErrDamaged, r.root.Join(formatFile))
	}
	return nil
}

// make makes the repository if the directory is absent or empty, and locks it.
func (r *Repository) make() (io.Closer, error) {
	if err := r.root.Make(); err != nil {
		return nil, wrap(err)
	}
	lock, err := r.take(false)
	if err != nil {
		return nil, err
	}
	if err := r.fill(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// fill makes the directories of the repository, then its format file.
func (r *Repository) fill() error {
	err := r.exists()
	if errors.Is(err, ErrNoRepository) {
		names, listed := r.root.List()
		if listed != nil {
			return wrap(listed)
		}
		foreign := slices.ContainsFunc(names, func(name string) bool {
			return !slices.Contains([]string{"LOCK", "lost+found", blobsDir, snapshotsDir, formatFile + newSuffix}, name)
		})
		if foreign {
			return err
		}
		err = nil
	}
	if err != nil {
		return err
	}
	for _, name := range []string{blobsDir, snapshotsDir} {
		if err := r.dir(name).Make(); err != nil {
			return wrap(err)
		}
	}
	if r.exists() == nil {
		return nil
	}
	return write(r.root, formatFile, formatText)
}

// write makes a small file, durably: all of it or nothing.
func write(d pebblestore.Dir, name, text string) error {
	err := d.Write(name+newSuffix, text)
	if err == nil {
		err = d.Rename(name+newSuffix, name)
	}
	if err == nil {
		if err = d.Sync(); err != nil {
			_ = d.FS.Remove(d.Join(name)) // it is there without being durable
		}
	}
	if err != nil {
		_ = d.FS.Remove(d.Join(name + newSuffix)) // err is why it was not written
		return fmt.Errorf("backup: write %s: %w", d.Join(name), err)
	}
	return nil
}

// wrap adds the name of the package to an error of the file system; nil stays nil.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("backup: %w", err)
}

package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// OpenReadOnly opens the store in o.Dir for a look and changes no byte of the directory: the
// log is replayed in memory, no opening is counted and nothing expires. So the next Open finds
// the same Epoch and Previous as if there had been no look. It reads the store of a program
// that was closed in order or killed, also one of an older format that Open would raise.
//
// Commit and every other change return ErrReadOnly. Epoch is the number that the next Open
// takes, and Previous tells how the last program ended. Close releases the directory; until
// then an Open of it fails with ErrLocked, because a program removes files that are being
// read here. Any number of readers may be open at a time. OpenReadOnly waits for a program
// up to o.WaitForLock, and compares the witness file if o.Witness says so; it does not use
// o.MinFreeBytes and o.MaxUnsyncedBytes. With o.Engine it reads that engine.
//
// Each error is one line that names the directory. It wraps ErrNoDirectory if there is no
// such directory, ErrNotStore if the directory holds no store or one that was not made to its
// end, ErrMovedStore for a view of a log (Options.Over), because it may lack commits that the
// log has, ErrFormat for a newer format, ErrLocked if a program has the store open (with its
// pid), ErrCorrupt for a damaged or missing file, and fs.ErrPermission if the process may not
// read a file. The memory is that of an open store: Options.Pebble makes its cache smaller.
func OpenReadOnly(o Options) (*Store, error) {
	o, err := o.withDefaults()
	if o.Engine != nil {
		return readEngine(o, err)
	}
	if err != nil {
		return nil, err
	}
	s, err := readDir(o)
	if err != nil {
		return nil, advisedReader(o.Dir, err)
	}
	return s, nil
}

// readEngine opens a store over the caller's engine for reading, unless the options are bad.
func readEngine(o Options, bad error) (s *Store, err error) {
	if err = bad; err == nil {
		s, err = newReader(o, o.Engine, cmp.Or(o.Shards, DefaultShards))
	}
	if err != nil {
		_ = o.Engine.Close() // err says why the store cannot be used
		return nil, err
	}
	return s, nil
}

// newReader returns a store over an engine that is only read.
func newReader(o Options, e engine.Engine, shards int) (*Store, error) {
	s := newStore(o, e, shards)
	s.readOnly = true
	return s, s.readEpoch()
}

// A reader does as Open does, but for each step that writes: it makes no directory, raises no
// format, begins no file of sums, makes no witness file and stores no epoch. For example, the
// reader of a store that has been closed in epoch 4 has the epoch 5, and so has the next Open.

// readDir locks the directory for a reader and opens the store in it.
func readDir(o Options) (*Store, error) {
	dir, lock, err := lockReader(o)
	if err != nil {
		return nil, err
	}
	s, err := readLocked(o, dir, lock)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// lockReader finds the directory and locks it for a reader.
func lockReader(o Options) (pebblestore.Dir, io.Closer, error) {
	dir := o.Pebble.Dir(o.Dir)
	switch info, err := dir.FS.Stat(dir.Path); {
	case errors.Is(err, fs.ErrNotExist):
		return dir, nil, fmt.Errorf("%w: %s: name the directory of a store", ErrNoDirectory, o.Dir)
	case err != nil:
		return dir, nil, fmt.Errorf("storage: %w", err)
	case !info.IsDir():
		return dir, nil, fmt.Errorf("%w: %s is a file: name a directory", ErrNotStore, o.Dir)
	}
	dir, err := dir.Real()
	if err != nil {
		return dir, nil, fmt.Errorf("storage: %w", err)
	}
	lock, err := awaitLock(o, dir, dir.LockShared)
	return dir, lock, err
}

// readLocked opens the store in a directory that is locked for a reader.
func readLocked(o Options, dir pebblestore.Dir, lock io.Closer) (*Store, error) {
	format, err := madeFormat(dir, o.Shards)
	if err != nil {
		return nil, err
	}
	db, err := pebblestore.OpenReadOnly(dir.Path, o.Pebble)
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	s, err := newReader(o, db, format.shards)
	s.dir, s.dormant = dir, format.dormant
	s.space.watch(dir, o.MinFreeBytes)
	if err == nil && o.Witness {
		if _, err = compareWitness(dir, s); errors.Is(err, fs.ErrNotExist) {
			err = nil // Open would make the file
		}
	}
	if err != nil {
		_ = db.Close() // err says why the store cannot be used
		return nil, notOpened(dir, err)
	}
	db.Own(lock)
	return s, nil
}

// madeFormat reads the format file of a store that has been made to its end.
func madeFormat(dir pebblestore.Dir, shards int) (format, error) {
	f, err := findFormat(dir, shards)
	switch {
	case err == nil && f.move != Move{}:
		return f, f.move.refused(dir)
	case err == nil && f.view:
		return f, errView(dir)
	case err != nil || f.complete:
		return f, err
	}
	other, err := otherFile(dir)
	switch {
	case err != nil:
		return f, err
	case f.version != 0:
		return f, fmt.Errorf("%w: the store in %s was not made to its end and holds nothing: open it with its program first", ErrNotStore, dir.Path)
	case other != "":
		return f, fmt.Errorf("%w: %s holds other files (%s) and no %s: name the directory of a store", ErrNotStore, dir.Path, other, formatFile)
	}
	return f, fmt.Errorf("%w: %s holds no store: name the directory of one", ErrNotStore, dir.Path)
}

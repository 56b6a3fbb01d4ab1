package storage

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// # The order of ReplaceView
//
//  1. The file HOLDFAST.restore is made. From here on the directory is known as one that a restore may empty.
//  2. The format file goes: the directory is no view any more. Then all other files go.
//  3. The new files come, all but the format file, and are synced.
//  4. HOLDFAST.restore gets the content of the format file, and then its name.
//
// The names are synced after each step. So a crash leaves the old view as a whole, or the new
// one, or a directory with HOLDFAST.restore and without a format file, which Open refuses and the
// next ReplaceView empties.

// restoreFile is a file of a directory in which a view is being restored. It becomes the format
// file.
const restoreFile = "HOLDFAST.restore"

// ReplaceView makes o.Dir a view of a log (Options.Over) from files that fill puts there, instead
// of the view that it holds. fill gets the directory, which is made if it is absent, empty, and
// locked, and returns the content of the format file. It syncs each file that it makes. sizeBytes
// is how many bytes it writes.
//
// It changes nothing and returns ErrMovedStore for a store of its own, ErrNotStore for a
// directory with files of others, and ErrNoSpace if less than Options.MinFreeBytes would be left
// free. An error of fill leaves a directory that is no store, and so does a crash; then it is to
// be called again. The other errors are those of Open.
func ReplaceView(o Options, sizeBytes uint64, fill func(pebblestore.Dir, *pebblestore.Lock) (format string, err error)) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if err := o.makeDir(); err != nil {
		return err
	}
	return locked(o, func(dir pebblestore.Dir, lock *pebblestore.Lock) error {
		if err := replaceable(dir); err != nil {
			return err
		}
		if err := spaceWithout(dir, sizeBytes, o.MinFreeBytes); err != nil {
			return err
		}
		if err := removeView(dir); err != nil {
			return fmt.Errorf("storage: remove the view in %s: %w", dir.Path, err)
		}
		text, err := fill(dir, lock)
		if err != nil {
			return err
		}
		return finishView(dir, text)
	})
}

// For example, a restore that loses power in step 3 leaves HOLDFAST.restore beside some tables.
// The program that opens its store next is told to restore again, because a database without its
// newest tables would look like an older state of the store.

// replaceable returns nil if a directory holds a view, a restore that has not ended, or nothing.
func replaceable(dir pebblestore.Dir) error {
	switch f, err := findFormat(dir, 0); {
	case err != nil:
		return err
	case f.version != 0 && f.view:
		return nil
	case f.version != 0:
		return errPlain(dir)
	}
	if _, err := dir.FS.Stat(dir.Join(restoreFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	other, err := otherFile(dir)
	if err == nil && other != "" {
		err = fmt.Errorf("%w: %s holds other files (%s): name a view or an empty directory", ErrNotStore, dir.Path, other)
	}
	return err
}

// errPlain refuses a store of its own to all that want a view.
func errPlain(dir pebblestore.Dir) error {
	return fmt.Errorf("%w: %s is a store of its own and no view of a log: name a new directory", ErrMovedStore, dir.Path)
}

// spaceWithout returns ErrNoSpace if a directory without its files has no room for sizeBytes and
// the floor. The old files count as free, because they go before the first new one comes. A
// restore onto a disk that is full of an old view would be refused for ever otherwise.
func spaceWithout(dir pebblestore.Dir, sizeBytes uint64, floor int64) error {
	free, err := dir.FreeBytes()
	if err != nil {
		return nil // its file system cannot tell
	}
	names, err := dir.List()
	if err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	for _, name := range names {
		if info, err := dir.FS.Stat(dir.Join(name)); err == nil && !info.IsDir() {
			free += uint64(info.Size())
		}
	}
	if needed := sizeBytes + uint64(max(floor, 0)); free < needed {
		return fmt.Errorf("%w: a view in %s: %d MiB are free without the old files, it needs %d MiB and leaves %d MiB",
			ErrNoSpace, dir.Path, free>>20, sizeBytes>>20, max(floor, 0)>>20)
	}
	return nil
}

// removeView empties the directory of a view, of a restore that has not ended, or an empty one.
func removeView(dir pebblestore.Dir) error {
	if err := dir.Write(restoreFile, ""); err != nil {
		return err
	}
	if err := dir.Sync(); err != nil {
		return err
	}
	for _, name := range []string{formatFileNew, formatFile} {
		if err := dir.FS.Remove(dir.Join(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := dir.Sync(); err != nil {
		return err
	}
	names, err := dir.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		switch name {
		case "LOCK", "lost+found", restoreFile:
			continue
		}
		if err := dir.FS.RemoveAll(dir.Join(name)); err != nil {
			return err
		}
	}
	return dir.Sync()
}

// finishView makes the directory a view with the format file of that text.
func finishView(dir pebblestore.Dir, text string) error {
	made, err := parseFormat(text)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s: %w", ErrFormat, dir.Join(formatFile), err)
	case !made.known():
		return errVersion(dir.Join(formatFile), made.version)
	case !made.view:
		return errPlain(dir)
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	if err := dir.Write(restoreFile, text); err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	if err := dir.Rename(restoreFile, formatFile); err != nil {
		return fmt.Errorf("storage: make %s: %w", dir.Join(formatFile), err)
	}
	return syncDir(dir)
}

// # Views without a store
//
// A store over a view is the owner of its log. But a view can also be filled by a process that
// owns nothing yet, and it can outlive its log. FillView and DetachView serve these two. Neither
// counts an opening, so the epoch row stays as the last owner has left it, and the next opening
// sees whether that ended in order.
//
// Invariant: a directory is a view, or a store of its own, never both, because its format file
// says one of the two and changes in one step. So at most one of the log and the directory goes
// on.

// FillView opens the view in o.Dir without a store over it, calls fill, and closes it. A view is
// made if the directory is absent or empty. All that is in the view must be in its log, because a
// crash takes it back to the last sync of fill. The errors are those of fill and of Open with
// Options.Over, which is not called.
func FillView(o Options, fill func(view engine.Engine) error) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if err := o.makeDir(); err != nil {
		return err
	}
	return locked(o, func(dir pebblestore.Dir, lock *pebblestore.Lock) error {
		made, err := readFormat(dir, o.Shards, true)
		if err != nil {
			return err
		}
		if err := checkSpace(dir, o.MinFreeBytes); err != nil {
			return err
		}
		if err := withView(o, dir, lock, made.complete, fill); err != nil || made.complete {
			return err
		}
		return completeFormat(dir)
	})
}

// withView calls do with the database of a view. It has no log, so a batch is durable after a
// Sync, which makes a table, or after the Close at the end.
func withView(o Options, dir pebblestore.Dir, lock *pebblestore.Lock, mustExist bool, do func(engine.Engine) error) error {
	p := o.Pebble
	p.NoLog, p.Lock, p.MustExist = true, lock, mustExist
	db, err := pebblestore.Open(dir.Path, p)
	if err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	return errors.Join(do(db), db.Close())
}

// DetachView makes the view in o.Dir a store of its own, which Open opens without a log. Its log
// must have ended, and the view must have all of it: else two stores go on from one state. row is
// the name of the row that says how far the view has its log; the view without it is none.
//
// One batch removes the row and takes 2^20 epochs (RaiseEpoch), and then the format file changes.
// So after a crash the directory is a view or the store, and the call is to be made again. It
// returns ErrMovedStore for a store of its own. The other errors are those of OpenReadOnly.
func DetachView(o Options, row string) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	return locked(o, func(dir pebblestore.Dir, lock *pebblestore.Lock) error {
		f, err := findFormat(dir, o.Shards)
		switch {
		case err != nil:
			return err
		case f.version == 0 || !f.complete:
			return fmt.Errorf("%w: %s holds no view of a log that was made to its end", ErrNotStore, dir.Path)
		case !f.view:
			return errPlain(dir)
		}
		if err := withView(o, dir, lock, true, func(view engine.Engine) error { return detach(view, row) }); err != nil {
			return err
		}
		f.view = false
		return changeFormat(dir, f)
	})
}

// detach removes the row and raises the epoch, durably. Both are in one batch, so the absence of
// the row tells a repeat, after a crash, that the epoch is raised already.
func detach(view engine.Engine, row string) error {
	_, closer, err := view.Get(metaKey(row))
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	if err := closer.Close(); err != nil {
		return err
	}
	b := new(Batch)
	b.DeleteMeta(row)
	if err := RaiseEpoch(view, b); err != nil {
		return err
	}
	if err := view.Apply(b.Repr()); err != nil {
		return err
	}
	return view.Sync()
}

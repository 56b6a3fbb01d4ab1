package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// ErrBadTarget is wrapped by the error of Checkpoint for a directory that exists, or that lies
// within that of the store.
var ErrBadTarget = pebblestore.ErrBadTarget

// Checkpoint makes a copy of the store in the new directory dir, while commits go on: a store of
// its own, with every commit that was made before the call and perhaps later ones. To its first
// Open it is as though the power had failed at that moment. Tables are linked on the same disk and
// copied to another one. The copy of a view (Options.Over) is a store of its own, and no view: CheckpointView makes a view.
//
// An error is the checkpoint's alone: dir is removed again, and the store lives on; unless the sync fails
// with which the copy begins, because that is the end of the store (ErrStorage). It wraps
// ErrBadTarget if dir exists or lies within the store, ErrNoSpace if less than
// Options.MinFreeBytes would be left free, and ErrReadOnly for a store that is open for reading. The
// end of ctx ends the copy at its next write, with the cause of ctx, and so does Close, with
// ErrClosed; so a long copy to another disk does not hold up the Shutdown of a host. A copy that a
// crash cuts off is no store: Open refuses it, because the format file comes last. It may be called
// from any goroutine; a second Checkpoint waits for the first.
func (s *Store) Checkpoint(ctx context.Context, dir string) error {
	return s.checkpoint(ctx, dir, false, nil)
}

// CheckpointPaced is Checkpoint with a bound of its own on how fast it writes: pace is called before each write of the copy with its
// bytes, in the goroutine of the caller, and may wait. Its error ends the copy. Close waits while it waits. The copy writes the logs,
// each of about Options.Pebble.MemTableBytes, the newest of them twice, and the tables too if the directory is on another disk.
func (s *Store) CheckpointPaced(ctx context.Context, dir string, pace func(bytes int) error) error {
	return s.checkpoint(ctx, dir, false, pace)
}

// CheckpointView is Checkpoint for a view of a log (Options.Over), and its copy is a view too: it opens with the log alone. It has
// every commit that was made before the call, because all that is in memory is flushed first, and the row that says how far the view has the log.
// So it calls the log, and an error of that is the end of the store, as at any commit. A store that is no view is refused.
func (s *Store) CheckpointView(ctx context.Context, dir string) error {
	if !s.view {
		return errors.New("storage: checkpoint: the store is no view of a log: use Checkpoint")
	}
	return s.checkpoint(ctx, dir, true, nil)
}

// Both copies have the same files and rows. The format file alone says which of the two a copy is, because the position row in it is right
// for a view, and is a row without a meaning for a store of its own. checkpoint makes the one or the other; pace may be nil.
func (s *Store) checkpoint(ctx context.Context, dir string, view bool, pace func(bytes int) error) error {
	if s.readOnly {
		return ErrReadOnly
	}
	if s.files == nil {
		return errors.New("storage: checkpoint: the engine of this store keeps no files")
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.exit()
	to := pebblestore.Dir{FS: s.dir.FS, Path: dir}
	if err := s.spaceFor(to); err != nil {
		return err
	}
	// Close waits for the calls under way, of which this is one, so it must end by itself.
	ended := func() error { return cmp.Or(s.Err(), seam.Cause(ctx)) }
	before := func(bytes int) error {
		if err := ended(); err != nil || pace == nil || bytes == 0 {
			return err
		}
		return cmp.Or(pace(bytes), ended())
	}
	if err := s.files.Checkpoint(dir, before); err != nil {
		return s.copyFailed(err)
	}
	if err := s.finishCopy(to, view, ended); err != nil {
		return errors.Join(fmt.Errorf("storage: checkpoint to %s: %w", dir, err), to.FS.RemoveAll(dir))
	}
	return nil
}

// copyFailed returns the error of a copy that the engine has not made. If the store has ended in it, because the sync failed with which a
// copy begins, that is the error: the engine tells of its end before the failed call returns (OnDeath).
func (s *Store) copyFailed(err error) error {
	if errors.Is(err, ErrBadTarget) {
		return err
	}
	if s.Err() != nil {
		return s.fail(err)
	}
	return fmt.Errorf("storage: %w", err)
}

// spaceFor returns ErrNoSpace if a copy would leave less free space than the floor.
func (s *Store) spaceFor(to pebblestore.Dir) error {
	if s.space.free == nil {
		return nil
	}
	parent := pebblestore.Dir{FS: to.FS, Path: to.FS.PathDir(to.Path)}
	for { // the copy makes the directories above it that are absent
		_, err := to.FS.Stat(parent.Path)
		up := to.FS.PathDir(parent.Path)
		if !errors.Is(err, fs.ErrNotExist) || up == parent.Path {
			break
		}
		parent.Path = up
	}
	free, err := parent.FreeBytes()
	if err != nil {
		return nil // its file system cannot tell
	}
	needed, err := s.dir.CopyBytes(parent)
	if err != nil {
		return fmt.Errorf("storage: checkpoint: %w", err)
	}
	if free < needed+s.space.floor {
		return fmt.Errorf("%w: checkpoint to %s: %d MiB are free, it needs %d MiB and leaves %d MiB", ErrNoSpace, to.Path, free>>20, needed>>20, s.space.floor>>20)
	}
	return nil
}

// finishCopy makes the copy of the database a store, or a view: with a witness file, if this store has one,
// and with the format file, which comes last, unless the checkpoint has ended before that.
func (s *Store) finishCopy(to pebblestore.Dir, view bool, ended func() error) error {
	if err := ended(); err != nil {
		return err
	}
	if s.witness != nil {
		n, err := witnessOfCopy(to)
		if err != nil {
			return err
		}
		text := make([]byte, 2*witnessSlot)
		copy(text[n%2*witnessSlot:], witnessSlotOf(n))
		if err := to.Write(witnessFile, string(text)); err != nil {
			return err
		}
	}
	if err := ended(); err != nil {
		return err
	}
	if err := to.Write(formatFile, format{version: FormatVersion, shards: s.shards, dormant: s.dormant, view: view}.text()); err != nil {
		return err
	}
	return to.Sync()
}

// witnessOfCopy is the number of the last sync that a copy of the database holds. A witness file
// without it would prove nothing at the first Open of the copy.
func witnessOfCopy(to pebblestore.Dir) (n uint64, err error) {
	db, err := pebblestore.OpenReadOnly(to.Path, pebblestore.Options{FS: to.FS, CacheBytes: 1 << 20})
	if err != nil {
		return 0, err
	}
	o, err := Options{Engine: db}.withDefaults()
	s := newStore(o, db, 1)
	if err == nil {
		n, err = s.witnessed()
	}
	return n, errors.Join(err, db.Close())
}

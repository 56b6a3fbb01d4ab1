package storage

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// FormatVersion is the version of the layout that this package writes. Open makes a store
// of version 3 one of this version, because that has the same rows and no labels. It refuses
// a store of any other version with ErrFormat.
const FormatVersion = 4

// oldestFormat is the oldest version that Open takes.
const oldestFormat = 3

// DefaultMinFreeBytes is the default of Options.MinFreeBytes: 192 MiB.
const DefaultMinFreeBytes = 192 << 20

// DefaultShards is the number of shards of a new store.
const DefaultShards = 64

// Options say where a store is and how it behaves. The zero value with a Dir is
// fit for production.
type Options struct {
	// Dir is the directory, made if it is absent. Required without Engine.
	Dir string
	// Shards is the number of shards of a new store, at most MaxShards; an old
	// store must have been made with the same number, unless it is zero.
	// Default: 64 for a new store, that of the store for an old one.
	Shards int
	// MinFreeBytes is the free space below which commits are refused with
	// ErrNoSpace, so that Pebble never meets a full disk in the middle of its
	// own work. Negative: no floor. Default: 192 MiB.
	MinFreeBytes int64
	// MaxUnsyncedBytes is how much may be committed and not yet durable before
	// Store.Congested reports it. Default: 64 MiB.
	MaxUnsyncedBytes int64
	// WaitForLock is how long Open waits while another process has the directory
	// open, as during a deploy in which the new process starts before the old one has
	// ended. It looks 20 times a second and logs for which process it waits; then it
	// returns ErrLocked. Default: 0, no wait.
	WaitForLock time.Duration
	// Witness keeps a file beside the database with the number of the last sync that
	// was acknowledged. Open fails with ErrAckedDataLost if the database does not
	// reach so far, because a damaged end of the log looks like that of a crash. Each
	// sync of the log costs a second sync, of the file. Default: no file.
	Witness bool
	// Feed keeps the feed, a row for each event that says its place in the order of all. The
	// events of an opening without it are not in the feed, so the next feed begins anew. Default:
	// no feed.
	Feed bool
	// Pebble shapes the engine. Its Lock must be nil.
	Pebble pebblestore.Options
	// Over makes the engine of the store from the database in Dir, which is then a view: a copy of a state that
	// is kept elsewhere, as in package shardlog. The engine owns the view, and closes it. If Over fails, Open closes it.
	// A view is marked as such in its format file, and Open refuses it without Over, with ErrMovedStore. It
	// excludes Witness and Engine. Default: the database is the engine.
	Over func(view engine.Engine) (engine.Engine, error)
	// Engine is used instead of Pebble in Dir, for simulations. It belongs to Open from
	// the call on: the store closes it, and so does an Open that fails.
	Engine engine.Engine
	// Seams are the clock, executor and probe. Zero: production.
	Seams seam.Seams
	// Log receives errors of the engine, and for which process Open waits. Default:
	// nothing.
	Log *slog.Logger
}

// withDefaults returns o with its defaults, or the first mistake in it.
func (o Options) withDefaults() (Options, error) {
	o.Seams = o.Seams.WithDefaults()
	o.MinFreeBytes = cmp.Or(o.MinFreeBytes, DefaultMinFreeBytes)
	o.MaxUnsyncedBytes = cmp.Or(o.MaxUnsyncedBytes, 64<<20)
	if o.Pebble.Log == nil {
		o.Pebble.Log = o.Log
	}
	if o.Dir == "" && o.Engine == nil {
		return o, errors.New("storage: Options.Dir is empty: name a directory for the store")
	}
	if o.Shards < 0 || o.Shards > MaxShards {
		return o, fmt.Errorf("storage: Options.Shards is %d: it must lie between 1 and %d", o.Shards, MaxShards)
	}
	if o.Over != nil && (o.Witness || o.Engine != nil) {
		return o, errors.New("storage: Options.Over excludes Witness and Engine: the log that it is for tells of lost commits itself")
	}
	if o.WaitForLock < 0 {
		return o, fmt.Errorf("storage: Options.WaitForLock is %v: it must not be negative", o.WaitForLock)
	}
	return o, nil
}

// Open opens the store in o.Dir and makes it if the directory is absent or empty. It
// holds the lock of the directory until Close. With Options.Engine it opens a store
// over that engine instead, and touches no file. It returns ErrLocked, ErrFormat, ErrNotStore, ErrMovedStore, ErrCorrupt or an error of
// the file system, each of which names the directory; the store is then
// unchanged.
func Open(o Options) (*Store, error) {
	o, err := o.withDefaults()
	if o.Engine != nil {
		return openEngine(o, err)
	}
	if err != nil {
		return nil, err
	}
	s, err := openDir(o)
	if err != nil {
		return nil, advised(o.Dir, err)
	}
	return s, nil
}

// openDir makes, locks and opens the directory, in this order, so that two processes
// that open a new store at the same time meet at the lock.
func openDir(o Options) (*Store, error) {
	if err := o.makeDir(); err != nil {
		return nil, err
	}
	dir, err := o.Pebble.Dir(o.Dir).Real()
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	lock, err := awaitLock(o, dir, dir.Lock)
	if err != nil {
		return nil, err
	}
	s, err := openLocked(o, dir, lock)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// makeDir makes the directory, if it is absent.
func (o Options) makeDir() error {
	switch err := o.Pebble.Dir(o.Dir).Make(); {
	case err == pebblestore.ErrIsFile:
		return fmt.Errorf("%w: %s is a file: name a directory", ErrNotStore, o.Dir)
	case err != nil:
		return notMade(o.Dir, fmt.Errorf("storage: %w", err))
	}
	return nil
}

// openEngine opens a store over the caller's engine, unless the options are bad.
func openEngine(o Options, bad error) (s *Store, err error) {
	if err = bad; err == nil {
		s = newStore(o, o.Engine, cmp.Or(o.Shards, DefaultShards))
		err = s.beginEpoch()
	}
	if err != nil {
		_ = o.Engine.Close() // err says why the store cannot be used
		return nil, err
	}
	return s, nil
}

// openLocked opens the store in a directory that this process has locked.
func openLocked(o Options, dir pebblestore.Dir, lock *pebblestore.Lock) (*Store, error) {
	format, err := readFormat(dir, o.Shards, o.Over != nil)
	if err != nil {
		return nil, err
	}
	if err := checkSpace(dir, o.MinFreeBytes); err != nil {
		return nil, err
	}
	p := o.Pebble
	p.Lock, p.MustExist = lock, format.complete
	db, err := pebblestore.Open(dir.Path, p)
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	e, err := o.engineOver(db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := newStore(o, e, format.shards)
	s.dir, s.files, s.dormant, s.view = dir, db, format.dormant, format.view
	err = s.beginIn(dir, o)
	switch {
	case err != nil:
		err = notOpened(dir, err)
	case !format.complete:
		err = completeFormat(dir)
	case format.version < FormatVersion:
		err = changeFormat(dir, format)
	}
	if err != nil {
		_ = e.Close() // err says why the store cannot be used
		return nil, err
	}
	db.Own(lock)
	return s, nil
}

// engineOver is the engine of a store over its database.
func (o Options) engineOver(db engine.Engine) (engine.Engine, error) {
	if o.Over == nil {
		return db, nil
	}
	return o.Over(db)
}

// beginIn begins the opening of a store over the database in a directory.
func (s *Store) beginIn(dir pebblestore.Dir, o Options) (err error) {
	s.space.watch(dir, o.MinFreeBytes)
	if o.Witness {
		if s.witness, err = openWitness(dir, s); err != nil {
			return err
		}
	}
	if err := s.beginEpoch(); err != nil {
		return errors.Join(err, s.closeWitness())
	}
	return nil
}

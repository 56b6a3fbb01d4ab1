package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/seam"
)

// FormatVersion is the version of the layout that this package writes and reads.
const FormatVersion = 3

// DefaultShards is the number of shards of a new store.
const DefaultShards = 64

// Options say where a store is and how it behaves. The zero value with a Dir is
// fit for production.
type Options struct {
	// Dir is the directory, made if it is absent. Required without Engine.
	Dir string
	// Shards is the number of shards of a new store, at most MaxShards; an old
	// store must have been made with the same number, unless it is zero.
	// Default: 64 for a new store, what the store has for an old one.
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
	// Witness keeps a file beside the database that tells what has been
	// acknowledged, and makes Open fail with ErrAckedDataLost if the database
	// lacks it. Each sync of the log then costs a second sync, of the file.
	Witness bool
	// Pebble shapes the engine. Its Lock must be nil.
	Pebble PebbleOptions
	// Engine is used instead of Pebble in Dir, for simulations. It belongs to Open from
	// the call on: the store closes it, and so does an Open that fails.
	Engine Engine
	// Seams are the clock, executor and probe. Zero: production.
	Seams seam.Seams
	// Log receives errors of the engine, and for which process Open waits. Default:
	// nothing.
	Log *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	o.Seams = o.Seams.WithDefaults()
	o.MinFreeBytes = cmpOr(o.MinFreeBytes, 192<<20)
	o.MaxUnsyncedBytes = cmpOr(o.MaxUnsyncedBytes, 64<<20)
	if o.Pebble.FS == nil {
		o.Pebble.FS = vfs.Default
	}
	if o.Pebble.Log == nil {
		o.Pebble.Log = o.Log
	}
	if o.Dir == "" && o.Engine == nil {
		return o, errors.New("storage: Options.Dir is empty: name a directory for the store")
	}
	if o.Shards < 0 || o.Shards > MaxShards {
		return o, fmt.Errorf("storage: Options.Shards is %d: it must lie between 1 and %d", o.Shards, MaxShards)
	}
	if o.WaitForLock < 0 {
		return o, fmt.Errorf("storage: Options.WaitForLock is %v: it must not be negative", o.WaitForLock)
	}
	return o, nil
}

// Open opens the store in o.Dir and makes it if the directory is absent or
// empty. It returns ErrLocked, ErrFormat, ErrNotStore, ErrCorrupt or an error of
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

func openDir(o Options) (*Store, error) {
	if err := makeDir(o); err != nil {
		return nil, err
	}
	dir, err := realDir(o)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	lock, err := awaitLock(o)
	if err != nil {
		return nil, err
	}
	s, err := openLocked(o, lock)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// openEngine opens a store over the caller's engine, unless the options are bad.
func openEngine(o Options, bad error) (s *Store, err error) {
	if err = bad; err == nil {
		s, err = newStore(o, o.Engine, cmpOr(o.Shards, DefaultShards), nil)
	}
	if err != nil {
		_ = o.Engine.Close() // err says why the store cannot be used
		return nil, err
	}
	return s, nil
}

func openLocked(o Options, lock *pebble.Lock) (*Store, error) {
	format, err := readFormat(o)
	if err != nil {
		return nil, err
	}
	if err := checkSpace(o); err != nil {
		return nil, err
	}
	p := o.Pebble
	p.Lock, p.mustExist = lock, format.complete
	engine, err := OpenPebble(o.Dir, p)
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	s, err := newStore(o, engine, format.shards, lock)
	if err != nil {
		err = fmt.Errorf("storage: open %s: %w", o.Dir, err)
	} else if !format.complete {
		err = completeFormat(o)
	}
	if err != nil {
		_ = engine.Close() // err says why the store cannot be used
		return nil, err
	}
	return s, nil
}

// makeDir makes the directory and its parents, each of them durable.
func makeDir(o Options) error {
	fsys := o.Pebble.FS
	info, err := fsys.Stat(o.Dir)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%w: %s is a file: name a directory", ErrNotStore, o.Dir)
	case err == nil:
		return nil
	case !isNotExist(err):
		return fmt.Errorf("storage: %w", err)
	}
	var made []string // the directories that get an entry, innermost first
	for dir := o.Dir; isNotExist(err); {
		parent := fsys.PathDir(dir)
		if parent == dir {
			break
		}
		made = append(made, parent)
		dir = parent
		_, err = fsys.Stat(dir)
	}
	if err := fsys.MkdirAll(o.Dir, 0o755); err != nil {
		return notMade(o.Dir, fmt.Errorf("storage: %w", err))
	}
	for _, dir := range made {
		if err := syncDir(fsys, dir); err != nil {
			return err
		}
	}
	return nil
}

// realDir is dir by the one name that all its other names stand for, so that two
// openings by different names meet at the lock. Only the operating system's
// files have other names.
func realDir(o Options) (string, error) {
	if o.Pebble.FS != vfs.Default {
		return o.Dir, nil
	}
	dir, err := filepath.EvalSymlinks(o.Dir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", fmt.Errorf("storage: %w", err)
	}
	return dir, nil
}

func syncDir(fsys vfs.FS, dir string) error {
	if dir == "" {
		dir = "."
	}
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("storage: sync %s: %w", dir, err)
	}
	return nil
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// Store is a Pebble database as an engine.Engine. Its methods may be called
// concurrently.
type Store struct {
	db   *pebble.DB
	log  *logger
	sums *sums

	dir      Dir // its files, without the stop at the first failed write
	files    *failStopFS
	copying  sync.Mutex // held while a Checkpoint is made, which waits for the disk
	readOnly bool       // see OpenReadOnly
	noLog    bool       // see Options.NoLog
	lock     io.Closer  // of the directory, which the end of the database closes; nil: the caller's

	syncing sync.Mutex // serializes Sync, because checkTail counts on it

	// iterators is the number of open iterators, plus closing once Close was called.
	// The call that brings it down to closing alone closes the database.
	iterators atomic.Int64
}

var _ engine.Mortal = (*Store)(nil)

const closing = 1 << 62

// Open opens the Pebble database in dir and makes it if it is absent. A new one is
// closed and opened once more, because Pebble protects the log of a database against
// damage only from its second opening on. An error wraps engine.ErrCorrupt if a file
// is damaged or missing.
func Open(dir string, o Options) (*Store, error) {
	o.FS = fileSystem(o.FS)
	manifest, err := findManifest(dir, o)
	if err != nil {
		return nil, err
	}
	if manifest == "" {
		if err := o.FS.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		e, err := open(dir, "", o)
		if err == nil {
			err = e.Close()
		}
		if err == nil {
			manifest, err = findManifest(dir, o)
		}
		if err != nil {
			return nil, err
		}
	}
	return open(dir, manifest, o)
}

// findManifest returns the name of the present manifest, or "" if there is no
// database in dir, and need not be. Pebble would take a lost marker for a new
// database, or for one of an old format.
func findManifest(dir string, o Options) (string, error) {
	desc, err := pebble.Peek(dir, o.FS)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		desc = &pebble.DBDesc{}
	case err != nil:
		return "", wrap("look at "+dir, err)
	}
	switch {
	case o.MustExist && !desc.Exists:
		return "", fmt.Errorf("%w: the database in %s is missing: no file marker.manifest.* names its manifest", engine.ErrCorrupt, dir)
	case o.MustExist && desc.FormatMajorVersion == pebble.FormatDefault:
		return "", fmt.Errorf("%w: the file marker.format-version.* in %s is missing", engine.ErrCorrupt, dir)
	case !desc.Exists:
		return "", nil
	}
	return o.FS.PathBase(desc.ManifestFilename), nil
}

func open(dir, manifest string, o Options) (e *Store, err error) {
	log := &logger{log: o.Log}
	defer log.recoverFatal(&err)
	sums, err := readSums(o.FS, dir, manifest)
	if err == nil && !o.readOnly {
		err = sums.begin(o.FS, dir)
	}
	if err != nil {
		return nil, err
	}
	if err := checkTail(o.FS, dir, sums); err != nil {
		_ = sums.close() // err comes first
		return nil, err
	}
	return openPebble(dir, o, sums, log)
}

// openPebble opens the database behind a file system that stops at the first failed write.
func openPebble(dir string, o Options, sums *sums, log *logger) (*Store, error) {
	fsys := newFailStopFS(o.FS, dir, &log.end, sums)
	fsys.beforeTable = o.BeforeTable
	o.FS = fsys
	db, err := pebble.Open(dir, pebbleOptions(o, log))
	if err != nil {
		_ = sums.close() // err comes first
		return nil, fsys.blame(wrap("open "+dir, err))
	}
	e := &Store{db: db, log: log, sums: sums, dir: Dir{fsys.FS, dir}, files: fsys, readOnly: o.readOnly, noLog: o.NoLog}
	if err := fsys.takeOutside(); err != nil {
		log.end.fail(err) // the name of the directory may not be durable
	}
	if err := log.failed(); err != nil {
		_ = e.Close() // returns the same error
		return nil, wrap("open "+dir, err)
	}
	return e, nil
}

// Get implements engine.Engine.
func (e *Store) Get(key []byte) (value []byte, closer io.Closer, err error) {
	defer e.log.recoverFatal(&err)
	value, closer, err = e.db.Get(key)
	if err == pebble.ErrNotFound {
		return nil, nil, engine.ErrNotFound
	}
	if err != nil {
		return nil, nil, e.log.readError(err)
	}
	return value, closer, nil
}

// NewIter implements engine.Engine.
func (e *Store) NewIter(lower, upper []byte) (_ engine.Iterator, err error) {
	defer e.log.recoverFatal(&err)
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, e.log.readError(err)
	}
	e.iterators.Add(1)
	return &iterator{Iterator: it, store: e}, nil
}

// Apply implements engine.Engine. It copies repr.
func (e *Store) Apply(repr []byte) (err error) {
	if err := e.log.failed(); err != nil {
		return err
	}
	if e.readOnly {
		return ErrReadOnly
	}
	defer e.log.recoverFatal(&err)
	b := e.db.NewBatchWithSize(len(repr))
	// Pebble's batch keeps its buffer in a pool; the copy leaves repr to us.
	if err := b.SetRepr(append(b.Repr()[:0], repr...)); err != nil {
		return wrap("encode a batch", err)
	}
	if err := e.db.Apply(b, pebble.NoSync); err != nil {
		return wrap("apply a batch", err)
	}
	if err := b.Close(); err != nil {
		return wrap("apply a batch", err)
	}
	return e.log.failed()
}

// Sync implements engine.Engine. It writes a record of no content and waits for it, since an empty batch
// would not reach the log at all. Two such records in a log tell that all before
// the first was synced (checkTail). Without a log it makes tables of all that is in memory.
func (e *Store) Sync() (err error) {
	if err := e.log.failed(); err != nil || e.readOnly {
		return err
	}
	defer e.log.recoverFatal(&err)
	e.syncing.Lock()
	defer e.syncing.Unlock()
	if e.noLog {
		return e.Flush()
	}
	if err := e.db.LogData(nil, pebble.Sync); err != nil {
		return wrap("sync", err)
	}
	return e.log.failed()
}

// Flush makes tables of all that is in memory, so that no batch is in the log alone. The log may keep records of no content.
func (e *Store) Flush() (err error) {
	if err := e.log.failed(); err != nil || e.readOnly {
		return err
	}
	defer e.log.recoverFatal(&err)
	if err := e.db.Flush(); err != nil {
		return wrap("flush", err)
	}
	return e.log.failed()
}

// Usage implements engine.Engine.
func (e *Store) Usage(lower, upper []byte) (sizeBytes uint64, err error) {
	defer e.log.recoverFatal(&err)
	sizeBytes, err = e.db.EstimateDiskUsage(lower, upper)
	return sizeBytes, wrap("estimate size", err)
}

// Close implements engine.Engine. It flushes before it closes, so that the next open replays no log. On a full
// disk it leaves that to the next open, because all is durable in the log. After
// the end there is nothing to flush, and Close only ends Pebble's goroutines. A
// Pebble that panicked may hold its locks for ever: it is left to the end of the
// process. While iterators are open the database stays open behind them, and the
// directory locked; the last of them closes it.
func (e *Store) Close() (err error) {
	if e.log.panicked.Load() {
		if e.readOnly { // nothing of it writes any more
			return errors.Join(e.log.failed(), e.unlock())
		}
		return e.log.failed()
	}
	defer e.log.recoverFatal(&err)
	synced := e.Sync() == nil
	if synced && !e.readOnly {
		e.log.closing.Store(true)
		if err := e.db.Flush(); err != nil {
			e.log.end.fail(wrap("flush", err))
		}
	}
	if e.iterators.Add(closing) == closing {
		err = e.closeDB()
	}
	if failed := e.log.failed(); failed != nil && !(synced && IsFull(failed)) {
		return failed
	}
	return err
}

func (e *Store) closeDB() error {
	err := e.db.Close()
	if sumsErr := e.sums.close(); err == nil {
		err = sumsErr
	}
	if unlockErr := e.unlock(); err == nil {
		err = unlockErr
	}
	return wrap("close", err)
}

// Own has the end of the database close the lock of its directory, because an iterator may
// outlive Close, and then the database writes and reads files until that ends. It is called
// before Close.
func (e *Store) Own(lock io.Closer) { e.lock = lock }

// unlock gives up the lock of the directory, if Own has handed it over.
func (e *Store) unlock() error {
	if e.lock == nil {
		return nil
	}
	return e.lock.Close()
}

// DB returns the database itself, for benchmarks and tests.
func (e *Store) DB() *pebble.DB { return e.db }

// OnDeath implements engine.Mortal.
func (e *Store) OnDeath(f func(error)) { e.log.end.onDeath(f) }

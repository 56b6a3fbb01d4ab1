package storage

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// PebbleOptions shape the Pebble engine.
type PebbleOptions struct {
	// FS is the file system. Default: the operating system's.
	FS vfs.FS
	// CacheBytes is the size of the block cache, of which Pebble takes the bytes
	// of its memtables. A cache that is too small for the blocks of one million
	// objects makes each look at one of them cost half as much again.
	// Default: 256 MiB.
	CacheBytes int64
	// MemTableBytes is the size a memtable may reach; Pebble holds up to two. A
	// larger one is flushed less often, which takes a processor each time, and
	// takes longer to replay after a crash. With 4 MiB, Pebble's default, nearly
	// twice as many bytes are written for a new object as with 64 MiB.
	// Default: 64 MiB.
	MemTableBytes int
	// Log receives what Pebble reports. Default: nothing.
	Log *slog.Logger
	// NoCompactions keeps Pebble from compacting by itself, which makes short
	// simulations cheap and exact. Limits on the first level are raised with it,
	// since writers would wait for ever for a compaction that never comes.
	NoCompactions bool
	// Lock is the directory's lock, if the caller holds it.
	Lock *pebble.Lock

	mustExist bool // the database has been made before
}

// pebbleEngine is Pebble as an Engine.
type pebbleEngine struct {
	db   *pebble.DB
	log  *pebbleLog
	sums *sums

	syncing sync.Mutex // a sync begins after the one before has returned

	// iterators counts the open ones, and closing if Close has come: whoever
	// brings it down to closing alone closes the database.
	iterators atomic.Int64
}

const closing = 1 << 62

// OpenPebble opens the Pebble database in dir and makes it if it is absent. A
// new one is closed and opened once more, because Pebble protects the log of a
// database against damage only from its second opening on.
func OpenPebble(dir string, o PebbleOptions) (Engine, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	manifest, err := findManifest(dir, o)
	if err != nil {
		return nil, err
	}
	if manifest == "" {
		if err := o.FS.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		e, err := openPebble(dir, "", o)
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
	return openPebble(dir, manifest, o)
}

// findManifest returns the name of the present manifest, or "" if there is no
// database in dir, and need not be. Pebble would take a lost marker for a new
// database, or for one of an old format.
func findManifest(dir string, o PebbleOptions) (string, error) {
	desc, err := pebble.Peek(dir, o.FS)
	switch {
	case isNotExist(err):
		desc = &pebble.DBDesc{}
	case err != nil:
		return "", wrapPebble("look at "+dir, err)
	}
	switch {
	case o.mustExist && !desc.Exists:
		return "", fmt.Errorf("%w: the database in %s is missing: no file marker.manifest.* names its manifest", ErrCorrupt, dir)
	case o.mustExist && desc.FormatMajorVersion == pebble.FormatDefault:
		return "", fmt.Errorf("%w: the file marker.format-version.* in %s is missing", ErrCorrupt, dir)
	case !desc.Exists:
		return "", nil
	}
	return o.FS.PathBase(desc.ManifestFilename), nil
}

func openPebble(dir, manifest string, o PebbleOptions) (e *pebbleEngine, err error) {
	log := &pebbleLog{log: o.Log}
	defer log.recoverFatal(&err)
	sums, err := openSums(o.FS, dir, manifest)
	if err != nil {
		return nil, err
	}
	if err := checkTail(o.FS, dir, sums); err != nil {
		_ = sums.close() // err comes first
		return nil, err
	}
	fsys := newFailStopFS(o.FS, &log.end, sums)
	o.FS = fsys
	db, err := pebble.Open(dir, pebbleOptions(o, log))
	if err != nil {
		_ = sums.close() // err comes first
		return nil, fsys.blame(wrapPebble("open "+dir, err))
	}
	e = &pebbleEngine{db: db, log: log, sums: sums}
	if err := log.failed(); err != nil {
		_ = e.Close() // returns the same error
		return nil, wrapPebble("open "+dir, err)
	}
	return e, nil
}

// pebbleOptions are Pebble's, but for the sizes, the format, the filters, one limit
// on the first level and one kind of compaction. These defaults of Pebble were measured too, with
// durable calls of 1,024 callers and with new objects, and kept:
//
//   - MemTableStopWritesThreshold 2, L0CompactionThreshold 4: writers were never
//     stopped. A higher one would keep more in memory, and more in the log.
//   - One compaction at a time: with two, neither processor time nor the bytes
//     written changed, and turns would get fewer processors.
//   - No WALMinSyncInterval: one of 0.5 ms made 64 callers a sixth slower, since
//     commits share syncs already.
func pebbleOptions(o PebbleOptions, log *pebbleLog) *pebble.Options {
	opts := &pebble.Options{
		FS:           o.FS,
		Lock:         o.Lock,
		Logger:       log,
		CacheSize:    cmpOr(o.CacheBytes, 256<<20),
		MemTableSize: uint64(cmpOr(o.MemTableBytes, 64<<20)),
		// The newest format carries checksums that name damage in the log.
		FormatMajorVersion: pebble.FormatNewest,
		// Twice Pebble's default, because a writer that is stopped here stops all
		// objects. No load of ours reached 12; with many more, reads slow down.
		L0StopWritesThreshold: 24,
		EventListener: &pebble.EventListener{
			BackgroundError: log.background,
			FlushEnd:        log.flushed,
			CompactionEnd:   log.compacted,
			DataCorruption:  log.corrupt,
		},
	}
	// No compaction only because most of a table is deletions. Nearly every table is
	// so at a flush, since what jobs write lives for milliseconds, and each such
	// compaction rewrites what lies between the deleted keys: with a million tasks
	// queued that took a third of the throughput. Ten million alarms that fire in a
	// row, and lists over what was deleted lately, were not slower without.
	opts.Experimental.TombstoneDenseCompactionThreshold = -1
	if o.NoCompactions {
		opts.DisableAutomaticCompactions = true
		opts.L0CompactionThreshold = 1 << 20
		opts.L0StopWritesThreshold = 1 << 20
	}
	// A filter spares the read of a block for a key that a level does not have,
	// for about one byte of disk a key. That pays for what is not in the cache;
	// for what is, no difference was measured. Pebble does not ask those of the
	// last level.
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return opts
}

func cmpOr[T ~int | ~int64](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

func (e *pebbleEngine) Get(key []byte) (value []byte, closer io.Closer, err error) {
	defer e.log.recoverFatal(&err)
	value, closer, err = e.db.Get(key)
	if err == pebble.ErrNotFound {
		return nil, nil, ErrNotFound
	}
	if err != nil {
		return nil, nil, e.log.readError(err)
	}
	return value, closer, nil
}

func (e *pebbleEngine) NewIter(lower, upper []byte) (_ Iterator, err error) {
	defer e.log.recoverFatal(&err)
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, e.log.readError(err)
	}
	e.iterators.Add(1)
	return &pebbleIter{Iterator: it, engine: e}, nil
}

func (e *pebbleEngine) Apply(repr []byte) (err error) {
	if err := e.log.failed(); err != nil {
		return err
	}
	defer e.log.recoverFatal(&err)
	b := e.db.NewBatchWithSize(len(repr))
	// Pebble's batch keeps its buffer in a pool; the copy leaves repr to us.
	if err := b.SetRepr(append(b.Repr()[:0], repr...)); err != nil {
		return wrapPebble("encode a batch", err)
	}
	if err := e.db.Apply(b, pebble.NoSync); err != nil {
		return wrapPebble("apply a batch", err)
	}
	if err := b.Close(); err != nil {
		return wrapPebble("apply a batch", err)
	}
	return e.log.failed()
}

// Sync writes a record of no content and waits for it, since an empty batch
// would not reach the log at all. Two such records in a log tell that all before
// the first was synced (checkTail).
func (e *pebbleEngine) Sync() (err error) {
	if err := e.log.failed(); err != nil {
		return err
	}
	defer e.log.recoverFatal(&err)
	e.syncing.Lock()
	defer e.syncing.Unlock()
	if err := e.db.LogData(nil, pebble.Sync); err != nil {
		return wrapPebble("sync", err)
	}
	return e.log.failed()
}

func (e *pebbleEngine) Usage(lower, upper []byte) (sizeBytes uint64, err error) {
	defer e.log.recoverFatal(&err)
	sizeBytes, err = e.db.EstimateDiskUsage(lower, upper)
	return sizeBytes, wrapPebble("estimate size", err)
}

// Close flushes before it closes, so that the next open replays no log. On a full
// disk it leaves that to the next open, because all is durable in the log. After
// the end there is nothing to flush, and Close only ends Pebble's goroutines. A
// Pebble that panicked may hold its locks for ever: it is left to the end of the
// process. While iterators are open the database stays open behind them, and the
// directory locked; the last of them closes it.
func (e *pebbleEngine) Close() (err error) {
	if e.log.panicked.Load() {
		return e.log.failed()
	}
	defer e.log.recoverFatal(&err)
	synced := e.Sync() == nil
	if synced {
		e.log.closing.Store(true)
		if err := e.db.Flush(); err != nil {
			e.log.end.fail(wrapPebble("flush", err))
		}
	}
	if e.iterators.Add(closing) == closing {
		err = e.closeDB()
	}
	if failed := e.log.failed(); failed != nil && !(synced && isFull(failed)) {
		return failed
	}
	return err
}

func (e *pebbleEngine) closeDB() error {
	err := e.db.Close()
	if sumsErr := e.sums.close(); err == nil {
		err = sumsErr
	}
	return wrapPebble("close", err)
}

// DB is the database itself, for benchmarks and for tests of this package.
func (e *pebbleEngine) DB() *pebble.DB { return e.db }

// onDeath implements mortal.
func (e *pebbleEngine) onDeath(f func(error)) { e.log.end.onDeath(f) }

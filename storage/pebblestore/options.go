package pebblestore

import (
	"cmp"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options shape the database. The zero value is fit for production.
type Options struct {
	// FS is the file system. Default: the operating system's.
	FS vfs.FS
	// CacheBytes is the size of the block cache, from which Pebble also takes the
	// bytes of its memtables. A cache that is too small for the blocks of one million
	// objects makes each look at one of them cost half as much again.
	// Default: 256 MiB.
	CacheBytes int64
	// MemTableBytes is the size a memtable may reach; Pebble holds up to two. A
	// larger one is flushed less often, which takes a processor each time, and
	// takes longer to replay after a crash. With 4 MiB, Pebble's default, nearly
	// twice as many bytes are written for a new object as with 64 MiB.
	// Default: 64 MiB.
	MemTableBytes int
	// Log receives the errors that Pebble reports. Default: no log.
	Log *slog.Logger
	// NoCompactions keeps Pebble from compacting by itself, which makes short
	// simulations cheap and exact. It raises the limits of the first level too,
	// because writers would wait for ever for a compaction that never comes.
	NoCompactions bool
	// NoLog leaves out the log, for an engine that keeps its batches elsewhere. A crash takes the store back to the
	// last table, and Sync makes one. A store that had a log until now must have been closed in order.
	NoLog bool
	// BeforeTable is called before each file of a table, or of blobs, is made. Its error ends the store, and no byte
	// of the file reaches the disk. It may be called by several goroutines at a time, and must not
	// wait for a batch that is being applied. Default: none.
	BeforeTable func() error
	// Lock is the lock of the directory if the caller holds it, from Dir.Lock.
	// Default: Open takes the lock.
	Lock *Lock
	// MustExist makes Open fail with engine.ErrCorrupt if there is no database.
	// Default: Open makes one.
	MustExist bool

	readOnly bool // see OpenReadOnly
}

// pebbleOptions returns Pebble's options, which are its defaults, but for the sizes, the format, the filters, one limit
// on the first level and one kind of compaction. These defaults of Pebble were measured too, with
// durable calls of 1,024 callers and with new objects, and kept:
//
//   - MemTableStopWritesThreshold 2, L0CompactionThreshold 4: writers were never
//     stopped. A higher one would keep more in memory, and more in the log.
//   - One compaction at a time: with two, neither processor time nor the bytes
//     written changed, and turns would get fewer processors.
//   - No WALMinSyncInterval: one of 0.5 ms made 64 callers a sixth slower, since
//     commits share syncs already.
func pebbleOptions(o Options, log *logger) *pebble.Options {
	opts := &pebble.Options{
		FS:           o.FS,
		Logger:       log,
		ReadOnly:     o.readOnly,
		DisableWAL:   o.NoLog,
		CacheSize:    cmp.Or(o.CacheBytes, 256<<20),
		MemTableSize: uint64(cmp.Or(o.MemTableBytes, 64<<20)),
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
	if o.Lock != nil {
		opts.Lock = o.Lock.pebble
	}
	// No compaction only because most of a table is deletions. Nearly every table is
	// so at a flush, because most rows of jobs live for milliseconds, and each such
	// compaction rewrites the rows between the deleted keys: with a million tasks
	// queued that took a third of the throughput. Ten million alarms that fire in a
	// row, and lists over keys that were deleted lately, were not slower without.
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

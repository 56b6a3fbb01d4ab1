// Package pebblestore is the engine of production: a Pebble database that stops at
// the first failed write, and that notices damage which Pebble would not.
//
// A program does not need it: storage.Open makes a Store of this package by itself.
// It is of use for a database on another file system, or with a smaller cache:
//
//	host, err := object.Open(object.Options{
//		Dir:     "data",
//		Storage: storage.Options{Pebble: pebblestore.Options{CacheBytes: 32 << 20}},
//	})
//
// The package is the only one of a host that knows Pebble. It adds to it:
//
//   - Failures end the engine (failstop.go, logger.go). Pebble panics, exits or keeps a
//     lock for ever when a write of its log fails. Here the failed write is hidden
//     from Pebble, nothing more reaches the disk, and each call returns the error.
//   - Damage is noticed (sums.go, tail.go). A file of checksums tells a lost or
//     damaged log and manifest, and a look through the newest log tells damage from
//     the torn end of a crash, because Pebble takes some damage for a torn end.
//   - Dir is the directory of a store: its lock, its sync, its free space, and the few
//     small files that package storage keeps beside the database.
//
// # Costs
//
// A Store holds up to CacheBytes (256 MiB) and two memtables of 64 MiB. Apply copies
// the batch. Sync is one fsync of the log, and a sync begins only after the one before
// has ended. Close flushes, so that the next Open replays no log.
//
// # Limits
//
// Damage within the writes of the last sync looks like the torn end of a crash and
// loses those writes silently; storage.Options.Witness finds that too.
package pebblestore

// Package engine is the contract between a storage.Store and the sorted, crash-safe
// key-value store that keeps its rows. An author of an engine needs this package
// alone; a user of Holdfast never meets it.
//
// There are two engines: storage/pebblestore keeps the rows in Pebble on disk, and
// is the one that storage.Open uses; storage/memstore keeps them in memory for simulations.
// A wrapper that counts, slows down or breaks another engine embeds it:
//
//	type slow struct{ engine.Engine }
//
//	func (s slow) Sync() error {
//		time.Sleep(10 * time.Millisecond)
//		return s.Engine.Sync()
//	}
//
//	store, err := storage.Open(storage.Options{Engine: slow{memstore.New()}})
//
// # The promises of an engine
//
//   - A batch becomes visible as a whole or not at all.
//   - The batches that survive a crash are a prefix of the order in which Apply
//     returned. They include each batch that was applied before a Sync began that returned
//     nil.
//   - Get and new iterators see each batch from the moment that its Apply returns.
//     An iterator shows the keys of the moment in which it was made.
//   - After an error of Apply or Sync the Store ends. It never asks the engine again
//     whether that batch survived, so a later opening may find it or not.
//   - Damaged files are an error that wraps ErrCorrupt, and never wrong values.
//
// An engine need not know the keys, the values or the order of calls of different
// goroutines: the Store orders the calls that must not happen at the same time.
//
// # Batches
//
// A batch reaches the engine as bytes, so that Pebble can take them as they are:
// they are a batch of Pebble. ReadBatch reads them for other engines. The header has
// 8 bytes that are zero and the number of records, 4 bytes little-endian; a record is
//
//	KindSet          uvarint length, key · uvarint length, value
//	KindDelete       uvarint length, key
//	KindDeleteRange  uvarint length, first key · uvarint length, first key that stays
package engine

// Package storage keeps the rows of all objects of one host in one embedded
// Pebble store.
//
//   - A Batch is applied as a whole or not at all. Store.Commit makes it visible
//     and gives it a place in the one order of commits; Store.WaitDurable waits
//     until that place is on disk.
//   - What survives a crash is a prefix of the order of commits, and holds every
//     commit that WaitDurable has reported.
//   - After an error of the engine the store is dead: every later commit, read
//     and wait fails with ErrStorage, and nothing more is acknowledged.
//   - A directory is opened by one process at a time. Its format version and
//     shard count are checked before a byte of it changes.
//
// The package knows where rows live (see FORMAT.md), not what they mean: alarms,
// events and marks are encoded by the packages above.
package storage

// Package storage keeps the rows of all objects of one host in one embedded store,
// with atomic batches that many goroutines make durable together. Package object is
// built on it. A program that has objects needs this package only for its options,
// its errors, and tools that look at a store at rest.
//
// # A first program
//
//	store, err := storage.Open(storage.Options{Dir: "data"})
//	if err != nil {
//		log.Fatal(err) // the error names the directory, and says how to mend it
//	}
//	defer store.Close()
//
//	id := storage.ID{Class: "cart", Name: "alice"}
//	o, err := store.Find(id)
//	if err == nil && o.Number == 0 { // the object does not exist yet
//		o.Number, o.Epoch = store.NewNumber(), store.Epoch()
//	}
//
//	var b storage.Batch
//	b.SetHeader(o)
//	b.SetData(o, "total", []byte("499"))
//	ticket, err := store.Commit(&b) // now each reader sees both rows
//	if err == nil {
//		err = store.WaitDurable(ticket) // now a crash keeps them
//	}
//
// # Guarantees
//
//   - A Batch is applied as a whole or not at all. Commit makes it visible and gives
//     it a Ticket, which is its place in the one order of commits; WaitDurable waits
//     until that place is on disk.
//   - The commits that survive a crash are a prefix of the order of commits, and
//     include every commit that WaitDurable has reported. So one number stands for
//     everything that a reply depends on: the greatest ticket it has seen.
//   - After an error of the engine the store is dead: every later commit, read and
//     wait fails with ErrStorage, and nothing more is acknowledged. A program ends
//     then, and opens the store again in a new process.
//   - A directory is opened by one process at a time. Open checks its format version
//     and its number of shards before it changes a byte.
//
// # Not to be assumed
//
//   - A Commit that returned nil is visible, not durable. A program may tell nobody
//     outside of it before WaitDurable has returned.
//   - An error of WaitDurable does not tell whether the commit survived. The next
//     opening shows it.
//   - The package knows where rows are (see FORMAT.md), and not their meaning: the
//     packages above encode alarms, events and marks. It does not serialize changes of
//     one object, because package object runs one turn of an object at a time.
//
// # Costs
//
// A Commit copies its batch once and waits for no disk. Goroutines that wait for
// durability at the same time share one sync, and no goroutine runs while none waits.
// A read copies the value. An open store holds a block cache of 256 MiB and up to two
// memtables of 64 MiB; Options.Pebble makes both smaller.
//
// # Limits
//
// A name has up to 1,024 bytes, a class up to 128, and a store up to 4,096 shards. The
// number of shards never changes. Commits are refused with ErrNoSpace while less than
// 192 MiB of the disk are free. Keys and values have no limit of their own here;
// package object bounds them.
package storage

package move_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/move"
	"github.com/holdfast-dev/holdfast/storage/shardlog/snapshot"
)

// A store of one machine goes into a log. The directory does not open any more, and each machine begins with the base.
func ExampleOptions_Import() {
	ctx := context.Background()
	log, disk := memlog.New(), vfs.NewMem() // in production: pglog, and no FS
	alone := storage.Options{Dir: "data", Pebble: pebblestore.Options{FS: disk}}
	store, err := storage.Open(alone)
	if err != nil {
		fmt.Println(err)
		return
	}
	var b storage.Batch
	b.SetMeta("greeting", []byte("hello"))
	_, err = store.Commit(&b)
	fmt.Println(err, store.Close())

	o := move.Options{Snapshots: snapshot.Options{Directory: log, Blobs: log, Log: log, FS: disk}}
	fmt.Println(o.Import(ctx, "data", "shop"))
	_, err = storage.Open(alone)
	fmt.Println(errors.Is(err, storage.ErrMovedStore))

	_, err = o.Snapshots.Restore(ctx, "node-1")
	fmt.Println(err)
	store, err = storage.Open(shardlog.Options{Log: log}.Storage(storage.Options{Dir: "node-1", Pebble: pebblestore.Options{FS: disk}}))
	if err != nil {
		fmt.Println(err)
		return
	}
	value, _, err := store.Meta("greeting")
	fmt.Println(string(value), err, store.Close())
	// Output:
	// <nil> <nil>
	// <nil>
	// true
	// <nil>
	// hello <nil> <nil>
}

// A store over a log comes back to one machine. Nothing opens the log any more.
func ExampleOptions_Export() {
	ctx := context.Background()
	log, disk := memlog.New(), vfs.NewMem()
	over := shardlog.Options{Log: log}.Storage(storage.Options{Dir: "node-1", Pebble: pebblestore.Options{FS: disk}})
	store, err := storage.Open(over)
	if err != nil {
		fmt.Println(err)
		return
	}
	var b storage.Batch
	b.SetMeta("greeting", []byte("hello"))
	_, err = store.Commit(&b)
	fmt.Println(err, store.Close())

	o := move.Options{Snapshots: snapshot.Options{Directory: log, Blobs: log, Log: log, FS: disk}}
	fmt.Println(o.Export(ctx, "data"))
	_, err = storage.Open(over)
	fmt.Println(errors.Is(err, shardlog.ErrExported))

	store, err = storage.Open(storage.Options{Dir: "data", Pebble: pebblestore.Options{FS: disk}})
	if err != nil {
		fmt.Println(err)
		return
	}
	value, _, err := store.Meta("greeting")
	fmt.Println(string(value), err, store.Close())
	// Output:
	// <nil> <nil>
	// <nil>
	// true
	// hello <nil> <nil>
}

// An import that cannot go on is taken back, and the store opens again.
func ExampleOptions_Undo() {
	ctx := context.Background()
	log, disk := memlog.New(), vfs.NewMem()
	alone := storage.Options{Dir: "data", Pebble: pebblestore.Options{FS: disk}}
	store, err := storage.Open(alone)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.Close())
	leaving, err := storage.Leave(alone) // as an import that was interrupted
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(leaving.Mark(storage.Move{Cluster: "shop"}), leaving.Close())

	o := move.Options{Snapshots: snapshot.Options{Directory: log, Blobs: log, Log: log, FS: disk}}
	_, err = storage.Open(alone)
	fmt.Println(errors.Is(err, storage.ErrMovedStore))
	fmt.Println(o.Undo(ctx, "data"))
	store, err = storage.Open(alone)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.Close())
	// Output:
	// <nil>
	// <nil> <nil>
	// true
	// <nil>
	// <nil>
}

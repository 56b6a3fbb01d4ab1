package snapshot_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/snapshot"
)

// The owner takes snapshots and truncates the log. Another machine, with an empty disk, begins with the newest one.
func ExampleOptions_Take() {
	ctx := context.Background()
	log, disk := memlog.New(), vfs.NewMem() // in production: pglog, and no FS
	open := func(dir string) (*storage.Store, error) {
		return storage.Open(shardlog.Options{Log: log}.Storage(storage.Options{Dir: dir, Pebble: pebblestore.Options{FS: disk}}))
	}
	o := snapshot.Options{Directory: log, Blobs: log, Log: log, FS: disk}
	store, err := open("node-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, value := range []string{"one", "two"} {
		var b storage.Batch
		b.SetMeta("greeting", []byte(value))
		ticket, err := store.Commit(&b)
		if err == nil {
			err = store.WaitDurable(ticket)
		}
		s, takeErr := o.Take(ctx, store, 1, "node-1.snapshot")
		fmt.Println(s.Last > 0, err, takeErr)
	}
	fmt.Println(o.Trim(ctx, 1), store.Close())

	_, err = open("node-2")
	fmt.Println(errors.Is(err, shardlog.ErrTruncated))
	s, err := o.Restore(ctx, "node-2")
	fmt.Println(o.Verify(ctx, s), err)
	store, err = open("node-2")
	if err != nil {
		fmt.Println(err)
		return
	}
	value, _, err := store.Meta("greeting")
	fmt.Println(string(value), err, store.Close())
	// Output:
	// true <nil> <nil>
	// true <nil> <nil>
	// <nil> <nil>
	// true
	// <nil> <nil>
	// two <nil> <nil>
}

package storage_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// A view is filled without a store over it, copied file by file to another directory, and made a store of its own when its log has ended.
func ExampleReplaceView() {
	disk := vfs.NewMem()
	options := func(dir string) storage.Options {
		return storage.Options{Dir: dir, Shards: 4, Pebble: pebblestore.Options{FS: disk}}
	}
	fmt.Println(storage.FillView(options("view"), func(view engine.Engine) error {
		var b storage.Batch
		b.SetMeta("greeting", []byte("hello"))
		b.SetMeta("place", []byte("record 7"))
		return errors.Join(view.Apply(b.Repr()), view.Sync())
	}))

	from := options("view").Pebble.Dir("view")
	names, err := from.List()
	fmt.Println(err)
	fmt.Println(storage.ReplaceView(options("copy"), 0, func(to pebblestore.Dir, _ *pebblestore.Lock) (format string, err error) {
		for _, name := range names {
			text, err := from.Read(name)
			switch {
			case err != nil:
				return "", err
			case name == storage.FormatFile:
				format = text
			case name != "LOCK":
				if err := to.Write(name, text); err != nil {
					return "", err
				}
			}
		}
		return format, nil
	}))

	_, err = storage.Open(options("copy"))
	fmt.Println(errors.Is(err, storage.ErrMovedStore))
	fmt.Println(storage.DetachView(options("copy"), "place"))
	store, err := storage.Open(options("copy"))
	if err != nil {
		fmt.Println(err)
		return
	}
	value, _, err := store.Meta("greeting")
	fmt.Println(string(value), store.Epoch(), err, store.Close())
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// true
	// <nil>
	// hello 1048577 <nil> <nil>
}

// A store over a log is copied as a view. Here the log is left out: the engine is the database.
func ExampleStore_CheckpointView() {
	disk := vfs.NewMem()
	o := storage.Options{
		Dir:    "view",
		Pebble: pebblestore.Options{FS: disk, NoLog: true},
		Over:   func(view engine.Engine) (engine.Engine, error) { return view, nil }, // in production: shardlog.Options.Storage
	}
	store, err := storage.Open(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.CheckpointView(context.Background(), "copy"), store.Close())
	_, err = storage.Open(storage.Options{Dir: "copy", Pebble: pebblestore.Options{FS: disk}})
	fmt.Println(errors.Is(err, storage.ErrMovedStore))
	// Output:
	// <nil> <nil>
	// true
}

// A directory is marked before its files become the base of a log, and while it is open whether they have.
func ExampleLeave() {
	o := storage.Options{Dir: "data", Pebble: pebblestore.Options{FS: vfs.NewMem()}}
	store, err := storage.Open(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.Close())
	leaving, err := storage.Leave(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(leaving.ID()), leaving.Mark(storage.Move{Cluster: "shop"}), leaving.Close())
	_, err = storage.Open(o)
	fmt.Println(err)
	// Output:
	// <nil>
	// 32 <nil> <nil>
	// storage: the directory and the log do not belong together: the store in data is moving to cluster shop: run holdfast cluster import data again, or take the move back with --undo
}

// A log has lost records: the next opening gives out no number of the lost part.
func ExampleRaiseEpoch() {
	disk := vfs.NewMem()
	o := storage.Options{Dir: "view", Pebble: pebblestore.Options{FS: disk}}
	fmt.Println(storage.FillView(o, func(view engine.Engine) error {
		var b storage.Batch
		if err := storage.RaiseEpoch(view, &b); err != nil {
			return err
		}
		return errors.Join(view.Apply(b.Repr()), view.Sync())
	}))
	o.Pebble.NoLog = true
	o.Over = func(view engine.Engine) (engine.Engine, error) { return view, nil } // in production: shardlog.Options.Storage
	store, err := storage.Open(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.Epoch(), store.Close())
	// Output:
	// <nil>
	// 1048577 <nil>
}

package backup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/admin/backup"
	"github.com/holdfast-dev/holdfast/storage"
)

// nightly makes a backup of an open store, and forgets old ones.
func nightly(ctx context.Context, repository *backup.Repository, store *storage.Store) error {
	made, err := repository.Create(ctx, store)
	if err != nil {
		return err
	}
	if _, err := repository.Verify(ctx, made.Name, nil); err != nil {
		return err
	}
	_, _, err = repository.Clean(backup.Keep{Last: 7, Days: 30})
	return err
}

// A look at a snapshot takes links to its tables, and not a copy of the store.
func ExampleRepository_RestoreLinked() {
	root, err := os.MkdirTemp("", "backup")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)
	store, err := storage.Open(storage.Options{Dir: filepath.Join(root, "store"), Shards: 4, MinFreeBytes: -1})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	repository, err := backup.Open(filepath.Join(root, "repository"), storage.Options{})
	if err == nil {
		err = nightly(ctx, repository, store)
	}
	look := filepath.Join(root, "look")
	if err == nil {
		_, err = repository.RestoreLinked(ctx, "", look)
	}
	if err != nil {
		panic(err)
	}
	seen, err := storage.OpenReadOnly(storage.Options{Dir: look})
	if err != nil {
		panic(err)
	}
	fmt.Println(seen.Dormant(), seen.ID() != store.ID())
	fmt.Println(seen.Close(), store.Close())
	// Output:
	// true true
	// <nil> <nil>
}

// A store is backed up while it is open, is lost, and is restored under another directory. The copy
// sleeps until it is woken.
func Example() {
	root, err := os.MkdirTemp("", "backup")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)
	o := storage.Options{Dir: filepath.Join(root, "store"), Shards: 4, MinFreeBytes: -1}
	store, err := storage.Open(o)
	if err != nil {
		panic(err)
	}
	var b storage.Batch
	b.SetMeta("greeting", []byte("hello"))
	at, err := store.Commit(&b)
	if err == nil {
		err = store.WaitDurable(at)
	}
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	repository, err := backup.Open(filepath.Join(root, "repository"), storage.Options{})
	if err == nil {
		err = nightly(ctx, repository, store)
	}
	if err == nil {
		err = store.Close()
	}
	if err == nil {
		err = os.RemoveAll(o.Dir)
	}
	if err != nil {
		panic(err)
	}

	o.Dir = filepath.Join(root, "restored")
	restored, err := repository.Restore(ctx, "", o.Dir)
	if err == nil {
		err = storage.Wake(o)
	}
	if err == nil {
		store, err = storage.Open(o)
	}
	if err != nil {
		panic(err)
	}
	value, _, err := store.Meta("greeting")
	fmt.Println(string(value), store.Dormant(), restored.Store != store.ID(), !restored.Verified.IsZero(), err)
	fmt.Println(store.Close())
	// Output:
	// hello false true true <nil>
	// <nil>
}

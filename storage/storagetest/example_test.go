package storagetest_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
	"github.com/holdfast-dev/holdfast/storage/storagetest"
)

// open opens the store to be tested; small memtables make a short workload flush
// and compact. A store on another engine would set Options.Engine to one that
// keeps its files in fsys.
func open(fsys vfs.FS, dir string) (*storage.Store, error) {
	return storage.Open(storage.Options{
		Dir:    dir,
		Shards: 4,
		Pebble: pebblestore.Options{FS: fsys, CacheBytes: 1 << 20, MemTableBytes: 64 << 10},
	})
}

// reporter stands for the t of a test.
type reporter struct{ testing.TB }

func (reporter) Helper()                      {}
func (reporter) Logf(string, ...any)          {}
func (reporter) Errorf(s string, args ...any) { fmt.Printf(s+"\n", args...) }

// Each function is called from a test of its own. Here t prints its messages.
func Example() {
	t := reporter{}
	crashes := storagetest.Crash(t, open, storagetest.Options{Points: 20})
	errors := storagetest.Errors(t, open, storagetest.Options{Points: 10, Commits: 10})
	damages := storagetest.Damage(t, open, storagetest.Options{Points: 40, Commits: 10})

	crashes.Add(errors)
	crashes.Add(damages)
	fmt.Println("more than 60 points:", crashes.Points > 60)
	fmt.Println("checks that failed:", crashes.Wrong)
	// Output:
	// more than 60 points: true
	// checks that failed: 0
}

package storage

import (
	"fmt"
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// TestMain also serves as the program of child processes: the variable names a task that
// the child does instead of running tests.
func TestMain(m *testing.M) {
	if child := os.Getenv("HOLDFAST_TEST_CHILD"); child != "" {
		if err := runChild(child); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	leaks.Main(m)
}

// memOptions are the options of a small store in fsys.
func memOptions(fsys vfs.FS) Options {
	return Options{Dir: "store", Shards: 4, Pebble: smallPebble(fsys)}
}

func smallPebble(fsys vfs.FS) pebblestore.Options {
	return pebblestore.Options{FS: fsys, CacheBytes: 1 << 20, MemTableBytes: 256 << 10}
}

func open(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// memStore opens a new store in memory. When the test ends the store is checked
// and closed, unless the test has closed it.
func memStore(t testing.TB) *Store {
	s := open(t, memOptions(vfs.NewMem()))
	t.Cleanup(func() { checkAndClose(t, s) })
	return s
}

func checkAndClose(t testing.TB, s *Store) {
	t.Helper()
	if s.Err() == nil {
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// commit commits the batch that change fills, and waits until it is durable.
func commit(t testing.TB, s *Store, change func(b *Batch)) {
	t.Helper()
	var b Batch
	change(&b)
	ticket, err := s.Commit(&b)
	if err == nil {
		err = s.WaitDurable(ticket)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// newObject makes an object that exists.
func newObject(t testing.TB, s *Store, class, name string) Object {
	t.Helper()
	o := Object{ID: ID{class, name}, Shard: s.ShardOf(ID{class, name}), Number: s.NewNumber(), Epoch: s.Epoch()}
	commit(t, s, func(b *Batch) { b.SetHeader(o) })
	return o
}

// dirOf is the directory of a store that was opened with memOptions.
func dirOf(fsys vfs.FS) pebblestore.Dir { return pebblestore.Dir{FS: fsys, Path: "store"} }

func newMem() vfs.FS { return vfs.NewMem() }

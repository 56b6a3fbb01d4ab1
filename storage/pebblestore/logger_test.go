package pebblestore

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var errBroken = errors.New("the disk is broken")

// small are the options of a small database.
func small(fsys vfs.FS) Options {
	return Options{FS: fsys, CacheBytes: 1 << 20, MemTableBytes: 256 << 10}
}

// A disk that refuses tables for a while, and not for long, is outlived.
func TestFewFailedFlushesAreOutlived(t *testing.T) {
	log := &logger{}
	for range 3 {
		for range backgroundTries - 1 {
			log.background(errBroken)
		}
		log.worked(nil)
	}
	if err := log.failed(); err != nil {
		t.Errorf("after %d failures in a row: %v", backgroundTries-1, err)
	}
	for range backgroundTries {
		log.background(errBroken)
	}
	if err := log.failed(); !errors.Is(err, errBroken) {
		t.Errorf("after %d failures in a row: %v", backgroundTries, err)
	}
}

// A function given to OnDeath is called at the end of the engine, or at once if the
// engine has ended. Proves O13 for an idle host.
func TestOnDeath(t *testing.T) {
	e, err := Open("db", small(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	var first, second error
	e.OnDeath(func(err error) { first = err })
	e.log.end.fail(errBroken)
	e.OnDeath(func(err error) { second = err })
	if first != errBroken || second != errBroken {
		t.Errorf("told %v, and %v after the end", first, second)
	}
	if err := e.Close(); err != errBroken {
		t.Errorf("Close: %v", err)
	}
}

// Pebble calls Fatalf while it serves a caller. The caller gets the text as an error, and
// neither the caller's goroutine nor the process ends. Proves O13's storage side.
func TestFatalOnACallersGoroutine(t *testing.T) {
	e, err := Open("db", small(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	it, err := e.NewIter([]byte("a"), []byte("b"))
	if err != nil {
		t.Fatal(err)
	}
	if ok := it.(*iterator).move(func(*pebble.Iterator) bool { e.log.Fatalf("no more of %s", "it"); return true }); ok {
		t.Error("O13: the move succeeded")
	}
	if err := it.Error(); err == nil || err.Error() != "no more of it" {
		t.Errorf("Error: %v", err)
	}
	if err := it.Close(); err != nil {
		t.Error(err)
	}
	if err := e.Apply(new(pebble.Batch).Repr()); err == nil || err.Error() != "no more of it" {
		t.Errorf("Apply: %v", err)
	}
	if err := e.Close(); err == nil {
		t.Fatal("O13: Close of an engine that stopped in the middle succeeded")
	}
	_ = e.db.Close() // in truth it did not stop

	background := make(chan struct{})
	log := &logger{}
	go func() {
		defer close(background)
		log.Fatalf("no more of %s", "it")
		t.Error("Fatalf returned")
	}()
	<-background
	if log.failed() == nil {
		t.Error("the engine goes on after Fatalf of a goroutine of Pebble")
	}
}

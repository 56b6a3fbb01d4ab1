package storage

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// An engine that ends by what Pebble does in the background ends its store at
// once, and not at the next commit.
//
// Proves O13 for an idle host.
func TestDeathInTheBackgroundIsToldAtOnce(t *testing.T) {
	engine, err := OpenPebble("db", PebbleOptions{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(Options{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("a flush failed for the last time")
	engine.(*pebbleEngine).log.end.fail(broken)
	select {
	case <-s.Dead():
	default:
		t.Error("the store was not told")
	}
	if err := s.Err(); !errors.Is(err, ErrStorage) || !errors.Is(err, broken) {
		t.Errorf("Err: %v", err)
	}
	if err := s.Abandon(); !errors.Is(err, broken) {
		t.Errorf("Abandon: %v", err)
	}
}

// countingEngine calls applied between the moment a batch is visible and the
// moment its commit has a ticket.
type countingEngine struct {
	Engine
	syncs   atomic.Int64
	applied func()
}

func (e *countingEngine) Apply(repr []byte) error {
	err := e.Engine.Apply(repr)
	if e.applied != nil {
		e.applied()
	}
	return err
}

func (e *countingEngine) Sync() error {
	e.syncs.Add(1)
	return e.Engine.Sync()
}

// Proves O7 for readers from outside: what is visible before it has a ticket is
// synced before it is shown, and what is durable costs nothing.
func TestWaitSeen(t *testing.T) {
	inner, err := OpenPebble("db", PebbleOptions{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	engine := &countingEngine{Engine: inner}
	s, err := Open(Options{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	before := engine.syncs.Load()
	if err := s.WaitSeen(); err != nil || engine.syncs.Load() != before {
		t.Errorf("a store at rest was synced %d times: %v", engine.syncs.Load()-before, err)
	}
	engine.applied = func() {
		engine.applied = nil
		before := engine.syncs.Load()
		if err := s.WaitSeen(); err != nil || engine.syncs.Load() != before+1 {
			t.Errorf("a commit without a ticket was not synced: %v", err)
		}
	}
	var b Batch
	b.SetMeta("x", nil)
	if _, err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

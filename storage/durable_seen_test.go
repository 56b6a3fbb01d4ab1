package storage

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// dyingEngine is an engine that tells of its end beside any call.
type dyingEngine struct {
	engine.Engine
	tell func(error)
}

func (e *dyingEngine) OnDeath(f func(error)) { e.tell = f }

// An engine that ends by work in the background ends its store at once, and not at
// the next commit.
//
// Proves O13 for an idle host.
func TestDeathInTheBackgroundIsToldAtOnce(t *testing.T) {
	dying := &dyingEngine{Engine: memstore.New()}
	s, err := Open(Options{Engine: dying})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("a flush failed for the last time")
	dying.tell(broken)
	select {
	case <-s.Dead():
	default:
		t.Error("the store was not told")
	}
	if err := s.Err(); !errors.Is(err, ErrStorage) || !errors.Is(err, broken) {
		t.Errorf("Err: %v", err)
	}
	if err := s.Close(); !errors.Is(err, broken) {
		t.Errorf("Close: %v", err)
	}
}

// countingEngine calls applied between the moment a batch is visible and the
// moment its commit has a ticket.
type countingEngine struct {
	engine.Engine
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

// Proves O7 for readers from outside: a commit that is visible before it has a ticket is
// synced before it is shown. A read of durable rows costs no sync.
func TestWaitSeen(t *testing.T) {
	inner, err := pebblestore.Open("db", pebblestore.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	counting := &countingEngine{Engine: inner}
	s, err := Open(Options{Engine: counting})
	if err != nil {
		t.Fatal(err)
	}
	before := counting.syncs.Load()
	if err := s.WaitSeen(t.Context()); err != nil || counting.syncs.Load() != before {
		t.Errorf("a store at rest was synced %d times: %v", counting.syncs.Load()-before, err)
	}
	counting.applied = func() {
		counting.applied = nil
		before := counting.syncs.Load()
		if err := s.WaitSeen(t.Context()); err != nil || counting.syncs.Load() != before+1 {
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

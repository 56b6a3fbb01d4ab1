package storage

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// fencedEngine is an engine that another process can take over.
type fencedEngine struct{ countingEngine }

func (*fencedEngine) GiveUp() {}

func (*fencedEngine) Replaced() bool { return false }

func (*fencedEngine) Full() error { return nil }

// viewOptions are those of a store over a view without a log of its own.
func viewOptions(fsys vfs.FS) (Options, *fencedEngine) {
	e := new(fencedEngine)
	o := memOptions(fsys)
	o.Pebble.NoLog = true
	o.Over = func(view engine.Engine) (engine.Engine, error) {
		e.Engine = view
		return e, nil
	}
	return o, e
}

// Proves N9: a view is opened with its log alone, and a store without one alone. A refusal changes nothing.
func TestViewAndStoreAreToldApart(t *testing.T) {
	fsys := vfs.NewMem()
	plain := memOptions(fsys)
	view, _ := viewOptions(fsys)
	view.Dir = "view"
	checkAndClose(t, open(t, plain))
	s := open(t, view)
	commitNumber(t, s, 7)
	checkAndClose(t, s)
	for what, c := range map[string]struct {
		o    Options
		dir  string
		want string
	}{
		"a view without its log": {plain, "view", "view is a view of a log"},
		"a store with a log":     {view, plain.Dir, "is a store of its own"},
	} {
		o := c.o
		o.Dir = c.dir
		if _, err := Open(o); !errors.Is(err, ErrMovedStore) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	checkAndClose(t, open(t, plain))
	s = open(t, view)
	if n := lastNumber(t, s); n != 7 {
		t.Errorf("the view ends with number %d, want 7", n)
	}
	checkAndClose(t, s)
}

// A log that fails to open leaves the directory free, and Over excludes Witness and Engine.
func TestOverRefuses(t *testing.T) {
	fsys := vfs.NewMem()
	o, _ := viewOptions(fsys)
	over, broken := o.Over, errors.New("the log does not answer")
	o.Over = func(engine.Engine) (engine.Engine, error) { return nil, broken }
	if _, err := Open(o); !errors.Is(err, broken) {
		t.Errorf("a log that fails: %v", err)
	}
	o.Over = over
	checkAndClose(t, open(t, o))
	o.Witness = true
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "Options.Over excludes Witness") {
		t.Errorf("Over and Witness: %v", err)
	}
	o.Witness, o.Engine = false, memstore.New()
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "Options.Over excludes Witness") {
		t.Errorf("Over and Engine: %v", err)
	}
}

// Proves N9: a checkpoint of a view is a store of its own with all commits before it, though the view has no log.
func TestCheckpointOfAView(t *testing.T) {
	fsys := vfs.NewMem()
	o, _ := viewOptions(fsys)
	s := open(t, o)
	for n := range 3 {
		commitNumber(t, s, n+1)
	}
	if err := s.Checkpoint(t.Context(), "copy"); err != nil {
		t.Fatal(err)
	}
	commitNumber(t, s, 4)
	checkAndClose(t, s)
	copied := memOptions(fsys)
	copied.Dir = "copy"
	s = open(t, copied)
	if n := lastNumber(t, s); n != 3 {
		t.Errorf("the copy ends with number %d, want 3", n)
	}
	checkAndClose(t, s)
}

// A reader of a store that another process can take over waits for a sync, though nothing is unsynced.
func TestWaitSeenOfAFencedStore(t *testing.T) {
	o, e := viewOptions(vfs.NewMem())
	s := open(t, o)
	for range 2 {
		before := e.syncs.Load()
		if err := s.WaitSeen(t.Context()); err != nil || e.syncs.Load() != before+1 {
			t.Errorf("a reader waited for %d syncs: %v", e.syncs.Load()-before, err)
		}
	}
	checkAndClose(t, s)
}

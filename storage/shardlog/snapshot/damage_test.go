package snapshot_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testing/machine"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/snapshot"
)

// rotten gives one blob as change leaves its parts.
type rotten struct {
	*memlog.Log
	blob   string
	change func(part []byte) []byte
}

func (r rotten) Get(ctx context.Context, shard int, name string, f func([]byte) error) error {
	return r.Log.Get(ctx, shard, name, func(part []byte) error {
		if name == r.blob {
			part = r.change(part)
		}
		return f(part)
	})
}

// three is a world with three snapshots that lie one record apart, and the owner.
func three(t *testing.T) (*machine.World, *storage.Store, []shardlog.Snapshot) {
	t.Helper()
	w := machine.New(t, -1)
	s, err := w.Open("view")
	machine.Must(t, "open", err)
	for _, value := range []string{"1", "2", "3"} {
		machine.Must(t, "commit", machine.Set(s, "x", value))
		machine.Must(t, "take", take(w, s))
	}
	all, err := w.Log.Snapshots(t.Context(), 0)
	machine.Must(t, "list", err)
	if len(all) != 3 {
		t.Fatalf("there are %d snapshots, want 3", len(all))
	}
	t.Cleanup(func() { _ = s.Close() })
	return w, s, all
}

// own is a blob that the first of two snapshots has alone.
func own(t *testing.T, a, b shardlog.Snapshot) string {
	t.Helper()
	others := make(map[string]bool)
	for _, name := range b.Blobs {
		others[name] = true
	}
	for _, name := range a.Blobs {
		if !others[name] {
			return name
		}
	}
	t.Fatal("both snapshots have the same blobs")
	return ""
}

var damages = map[string]func([]byte) []byte{
	"a flipped bit": func(p []byte) []byte { p[len(p)/2] ^= 1; return p },
	"a lost byte":   func(p []byte) []byte { return p[:len(p)-1] },
	"a byte more":   func(p []byte) []byte { return append(p, 0) },
	"nothing":       func(p []byte) []byte { return nil },
}

// Proves N10: the log is not truncated behind a snapshot that is not whole, and nothing is collected then.
func TestTrimNeedsAWholeSnapshot(t *testing.T) {
	for about, change := range damages {
		w, _, all := three(t)
		o := w.Snapshots()
		o.Blobs = rotten{w.Log, own(t, all[1], all[0]), change}
		if err := o.Verify(t.Context(), all[1]); !errors.Is(err, snapshot.ErrDamaged) {
			t.Errorf("%s: Verify returns %v", about, err)
		}
		machine.Must(t, about+": the newest", o.Verify(t.Context(), all[0]))
		blobs, err := w.Log.List(t.Context(), 0)
		machine.Must(t, about, err)
		if err := o.Trim(t.Context(), w.Term()); !errors.Is(err, snapshot.ErrDamaged) {
			t.Errorf("%s: Trim returns %v", about, err)
		}
		left, err := w.Log.List(t.Context(), 0)
		machine.Must(t, about, err)
		if h := w.Head(); h.First != 1 || len(left) != len(blobs) {
			t.Errorf("%s: the log begins at %d, and %d of %d blobs are left", about, h.First, len(left), len(blobs))
		}
		o = w.Snapshots()
		machine.Must(t, about, o.Trim(t.Context(), w.Term()))
		if h := w.Head(); h.First != all[1].Last+1 {
			t.Errorf("%s: a whole snapshot: the log begins at %d, want %d", about, h.First, all[1].Last+1)
		}
	}
}

// A truncation that has been made needs no second look at the blobs.
func TestTrimVerifiesOnce(t *testing.T) {
	w, _, _ := three(t)
	machine.Must(t, "trim", w.Snapshots().Trim(t.Context(), w.Term()))
	o := w.Snapshots()
	o.Blobs = unreadable{w.Log}
	machine.Must(t, "trim again", o.Trim(t.Context(), w.Term()))
}

// unreadable gives no blob.
type unreadable struct{ *memlog.Log }

func (unreadable) Get(context.Context, int, string, func([]byte) error) error {
	return io.ErrUnexpectedEOF
}

// Proves N10: a damaged snapshot is passed over for the one before, and never opened.
func TestRestorePassesADamagedSnapshotOver(t *testing.T) {
	for about, change := range damages {
		w, _, all := three(t)
		machine.Must(t, about, w.Snapshots().Trim(t.Context(), w.Term()))
		o := w.Snapshots()
		o.Blobs = rotten{w.Log, own(t, all[0], all[1]), change}
		restored, err := o.Restore(t.Context(), "new")
		machine.Must(t, about, err)
		if restored.Last != all[1].Last {
			t.Errorf("%s: restored record %d, want %d", about, restored.Last, all[1].Last)
		}
		got, err := w.CaughtUp("new")
		machine.Must(t, about, err)
		if want := w.All(nil); !maps.Equal(got, want) {
			t.Errorf("%s: the view differs from the log:\n%s", about, machine.Differences(got, want))
		}
	}
	w, _, all := three(t)
	o := w.Snapshots()
	for _, name := range common(t, all) { // the format file is one of them
		o.Blobs = rotten{w.Log, name, damages["a lost byte"]}
		if _, err := o.Restore(t.Context(), "bad"); !errors.Is(err, snapshot.ErrDamaged) {
			t.Errorf("all are damaged, in blob %s: %v", name, err)
		}
		if _, err := w.Open("bad"); !errors.Is(err, storage.ErrNotStore) || !strings.Contains(err.Error(), "restore it again") {
			t.Errorf("the directory of a restore that failed: %v", err)
		}
	}
	if _, err := w.Snapshots().Restore(t.Context(), "bad"); err != nil {
		t.Errorf("the next restore: %v", err)
	}
}

// common are the blobs that all snapshots have.
func common(t *testing.T, all []shardlog.Snapshot) (names []string) {
	t.Helper()
	count := make(map[string]int)
	for _, s := range all {
		for _, name := range s.Blobs {
			if count[name]++; count[name] == len(all) {
				names = append(names, name)
			}
		}
	}
	if names == nil {
		t.Fatal("no blob is in all snapshots")
	}
	return names
}

// Proves N10: files that are those of another record are refused, though each has its hash.
func TestRestoreComparesThePlace(t *testing.T) {
	w, _, all := three(t)
	wrong := all[1]
	wrong.Last, wrong.Chain = all[0].Last, all[0].Chain
	machine.Must(t, "register", w.Log.Register(t.Context(), 0, w.Term(), wrong))
	restored, err := w.Snapshots().Restore(t.Context(), "new")
	machine.Must(t, "restore", err)
	if restored.Last != all[1].Last {
		t.Errorf("restored the snapshot of record %d, want that of %d", restored.Last, all[1].Last)
	}
}

// Proves N10: a replaced owner registers, truncates and collects nothing, also when it is replaced between two steps.
func TestReplacedOwnerChangesNothing(t *testing.T) {
	w, s, all := three(t)
	term := w.Term()
	stray := func() {
		machine.Must(t, "put", w.Log.Put(t.Context(), 0, "stray", strings.NewReader("x")))
	}
	stray()
	claimed := false
	claim := func() {
		if !claimed {
			claimed = true
			_, err := w.Log.Claim(t.Context(), 0, "next", term)
			machine.Must(t, "claim", err)
		}
	}
	o := w.Snapshots()
	o.Blobs = claiming{w.Log, claim}
	if _, err := o.Take(t.Context(), s, term, "scratch"); !errors.Is(err, shardlog.ErrFenced) {
		t.Errorf("Take of an owner that is replaced while it uploads: %v", err)
	}
	if !claimed {
		t.Fatal("nobody has claimed the log")
	}
	if err := w.Snapshots().Trim(t.Context(), term); !errors.Is(err, shardlog.ErrFenced) {
		t.Errorf("Trim of a replaced owner: %v", err)
	}
	unchanged(t, w, all)

	w, _, all = three(t)
	term = w.Term()
	stray()
	claimed = false
	o = w.Snapshots()
	o.Blobs = claiming{w.Log, claim}
	if err := o.Trim(t.Context(), term); !errors.Is(err, shardlog.ErrFenced) || !claimed {
		t.Errorf("Trim of an owner that is replaced while it verifies: %v", err)
	}
	unchanged(t, w, all)

	machine.Must(t, "quarantine", w.Log.Quarantine(t.Context(), 0, "record 3"))
	if err := w.Snapshots().Trim(t.Context(), w.Term()); !errors.Is(err, shardlog.ErrFenced) {
		t.Errorf("Trim in quarantine: %v", err)
	}
	unchanged(t, w, all)
}

// claiming claims the log at the first blob that is put or read.
type claiming struct {
	*memlog.Log
	claim func()
}

func (c claiming) Put(ctx context.Context, shard int, name string, r io.Reader) error {
	c.claim()
	return c.Log.Put(ctx, shard, name, r)
}

func (c claiming) Get(ctx context.Context, shard int, name string, f func([]byte) error) error {
	c.claim()
	return c.Log.Get(ctx, shard, name, f)
}

// unchanged checks that the log has all records, these snapshots, and the blob that none of them names.
func unchanged(t *testing.T, w *machine.World, all []shardlog.Snapshot) {
	t.Helper()
	got, err := w.Log.Snapshots(context.Background(), 0)
	machine.Must(t, "list", err)
	if h := w.Head(); h.First != 1 || len(got) != len(all) || got[0].Last != all[0].Last {
		t.Errorf("the log begins at %d and has %d snapshots, want 1 and %d", h.First, len(got), len(all))
	}
	if err := w.Log.Get(context.Background(), 0, "stray", func([]byte) error { return nil }); err != nil {
		t.Errorf("the blob that no snapshot names: %v", err)
	}
}

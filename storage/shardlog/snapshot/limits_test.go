package snapshot_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/testing/machine"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/snapshot"
)

// narrow is a file system with so many free bytes.
type narrow struct {
	vfs.FS
	free uint64
}

func (n narrow) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: n.free}, nil
}

// sizeOf is the length of all files of a snapshot.
func sizeOf(t *testing.T, w *machine.World, s shardlog.Snapshot) (n uint64) {
	t.Helper()
	blobs, err := w.Log.List(t.Context(), 0)
	machine.Must(t, "list", err)
	for _, b := range blobs {
		if strings.Contains(strings.Join(s.Blobs, " "), b.Name) {
			n += uint64(b.Bytes)
		}
	}
	return n
}

// Restore leaves the floor free, and counts the files of the old view as free, because they go first.
func TestRestoreNeedsSpace(t *testing.T) {
	w, _, all := three(t)
	const floor = 1 << 20
	needed := sizeOf(t, w, all[0]) + floor
	for _, c := range []struct {
		free uint64
		ok   bool
	}{{needed - 1, false}, {needed, true}, {needed - 1, true}} { // the third has the view of the second to replace
		o := w.Snapshots()
		o.FS, o.MinFreeBytes = narrow{w.Disk, c.free}, floor
		if _, err := o.Restore(t.Context(), "new"); (err == nil) != c.ok || err != nil && !errors.Is(err, storage.ErrNoSpace) {
			t.Errorf("%d bytes are free: %v", c.free, err)
		}
	}
	if got, err := w.CaughtUp("new"); err != nil || got[machine.Meta("x")] != "3" {
		t.Errorf("x is %q: %v", got[machine.Meta("x")], err)
	}
}

// Restore removes nothing that is no view.
func TestRestoreRefusesWhatIsNoView(t *testing.T) {
	w, _, _ := three(t)
	s, err := storage.Open(w.Plain("plain"))
	machine.Must(t, "open", err)
	machine.Must(t, "commit", machine.Set(s, "x", "own"))
	machine.Must(t, "close", s.Close())
	machine.Must(t, "make", w.Plain("").Pebble.Dir("photos").Make())
	machine.Must(t, "write", w.Plain("").Pebble.Dir("photos").Write("cat.jpg", "a cat"))
	for dir, want := range map[string]error{"plain": storage.ErrMovedStore, "photos": storage.ErrNotStore, "view": storage.ErrLocked} {
		if _, err := w.Snapshots().Restore(t.Context(), dir); !errors.Is(err, want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want %v", dir, err, want)
		}
	}
	s, err = storage.Open(w.Plain("plain"))
	machine.Must(t, "open again", err)
	if v, _, err := s.Meta("x"); string(v) != "own" || err != nil {
		t.Errorf("the store has %q: %v", v, err)
	}
	machine.Must(t, "close", s.Close())
	if text, err := w.Plain("").Pebble.Dir("photos").Read("cat.jpg"); text != "a cat" {
		t.Errorf("the file of others has %q: %v", text, err)
	}
}

// Tables that the last snapshot had are not uploaded again.
func TestTakeUploadsWhatIsNew(t *testing.T) {
	w, s, all := three(t)
	var b storage.Batch
	b.SetMeta("big", make([]byte, 1<<20))
	ticket, err := s.Commit(&b)
	machine.Must(t, "commit", errors.Join(err, s.WaitDurable(ticket)))
	machine.Must(t, "take", take(w, s))
	before, err := w.Log.List(t.Context(), 0)
	machine.Must(t, "list", err)
	machine.Must(t, "commit", machine.Set(s, "x", "4"))
	machine.Must(t, "take", take(w, s))
	after, err := w.Log.List(t.Context(), 0)
	machine.Must(t, "list", err)
	if added := len(after) - len(before); added == 0 || added >= len(all[0].Blobs) {
		t.Errorf("the snapshot after one commit added %d blobs, the first has %d", added, len(all[0].Blobs))
	}
}

// The mistakes of a caller are errors that say what to do, and a store that is no view has no snapshot.
func TestMistakes(t *testing.T) {
	w, s, _ := three(t)
	for want, o := range map[string]snapshot.Options{
		"are required": {FS: w.Disk},
		"must not be":  {Directory: w.Log, Blobs: w.Log, Log: w.Log, Shard: -1},
	} {
		_, restored := o.Restore(t.Context(), "new")
		_, taken := o.Take(t.Context(), s, 1, "scratch")
		for _, err := range []error{restored, taken, o.Trim(t.Context(), 1), o.Verify(t.Context(), shardlog.Snapshot{})} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
	if _, err := w.Snapshots().Take(t.Context(), s, w.Term(), "view/inside"); !errors.Is(err, storage.ErrBadTarget) {
		t.Errorf("a scratch directory in the view: %v", err)
	}
	plain, err := storage.Open(w.Plain("plain"))
	machine.Must(t, "open", err)
	if _, err := w.Snapshots().Take(t.Context(), plain, 1, "scratch"); err == nil || !strings.Contains(err.Error(), "no view") {
		t.Errorf("a store of its own: %v", err)
	}
	machine.Must(t, "close", plain.Close())
}

// The end of the context ends each verb with its cause, and the next call succeeds.
func TestContextEnds(t *testing.T) {
	w, s, all := three(t)
	gone := errors.New("the node ends")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	_, restored := w.Snapshots().Restore(ctx, "new")
	_, taken := w.Snapshots().Take(ctx, s, w.Term(), "scratch")
	for verb, err := range map[string]error{"restore": restored, "take": taken, "verify": w.Snapshots().Verify(ctx, all[0]), "trim": w.Snapshots().Trim(ctx, w.Term())} {
		if err == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, gone) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	machine.Must(t, "take", take(w, s))
	machine.Must(t, "trim", w.Snapshots().Trim(t.Context(), w.Term()))
	_, err := w.Snapshots().Restore(t.Context(), "new")
	machine.Must(t, "restore", err)
}

// points is a probe that keeps the names.
type points struct{ names []string }

func (p *points) At(at seam.Point) { p.names = append(p.names, at.Name) }

// A simulation meets each step of the three verbs.
func TestPoints(t *testing.T) {
	w, s, _ := three(t)
	p := new(points)
	o := w.Snapshots()
	o.Seams.Probe = p
	_, err := o.Take(t.Context(), s, w.Term(), "scratch")
	machine.Must(t, "take", err)
	machine.Must(t, "trim", o.Trim(t.Context(), w.Term()))
	_, err = o.Restore(t.Context(), "new")
	machine.Must(t, "restore", err)
	want := "snapshot/copied snapshot/uploaded snapshot/registered truncate snapshot/collect snapshot/fetched"
	if got := strings.Join(p.names, " "); got != want {
		t.Errorf("the points are %s, want %s", got, want)
	}
}

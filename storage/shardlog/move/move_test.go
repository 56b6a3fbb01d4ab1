package move_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testing/machine"
	"github.com/holdfast-dev/holdfast/internal/testing/prove"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/move"
)

// options are those of the log of the world.
func options(w *machine.World) move.Options {
	return move.Options{Snapshots: w.Snapshots(), Shards: 4}
}

// filled makes a store of one machine in the directory data.
func filled(w *machine.World, value string) error {
	s, err := storage.Open(w.Plain("data"))
	if err != nil {
		return err
	}
	return errors.Join(machine.Set(s, "x", value), machine.Set(s, "big", strings.Repeat("v", 200_000)), s.Close())
}

// node opens the store over the log, from a snapshot if the view in dir is too old.
func node(w *machine.World, dir string) (*storage.Store, error) {
	s, err := w.Open(dir)
	if errors.Is(err, shardlog.ErrTruncated) {
		if _, err := w.Snapshots().Restore(context.Background(), dir); err != nil {
			return nil, err
		}
		s, err = w.Open(dir)
	}
	return s, err
}

// value is the row x of a store, which is closed then.
func value(s *storage.Store, err error) (string, error) {
	if err != nil {
		return "", err
	}
	v, _, err := s.Meta("x")
	return string(v), errors.Join(err, s.Check(), s.Close())
}

// Proves N11: a store goes into a log and comes back, with its id and all rows, and beyond the epochs of the log.
func TestThereAndBack(t *testing.T) {
	w := machine.New(t, -1)
	machine.Must(t, "fill", filled(w, "1"))
	s, err := storage.Open(w.Plain("data"))
	machine.Must(t, "open", err)
	id := s.ID()
	machine.Must(t, "close", s.Close())
	machine.Must(t, "import", options(w).Import(t.Context(), "data", "shop"))
	machine.Must(t, "import again", options(w).Import(t.Context(), "data", "shop"))

	s, err = node(w, "node")
	machine.Must(t, "open over the log", err)
	if got, _, err := s.Meta("x"); string(got) != "1" || s.ID() != id || !s.Previous().Clean || err != nil {
		t.Errorf("the log has %q, the id %s and %+v before it: %v", got, s.ID(), s.Previous(), err)
	}
	machine.Must(t, "commit", machine.Set(s, "x", "2"))
	_, err = w.Snapshots().Take(t.Context(), s, w.Term(), "scratch")
	machine.Must(t, "take", err)
	epoch := s.Epoch()
	machine.Must(t, "close", s.Close())

	machine.Must(t, "export", options(w).Export(t.Context(), "back"))
	machine.Must(t, "export again", options(w).Export(t.Context(), "back"))
	s, err = storage.Open(w.Plain("back"))
	machine.Must(t, "open alone", err)
	if s.Epoch() != epoch+1<<20+1 || s.ID() != id || !s.Previous().Clean {
		t.Errorf("the store has epoch %d and id %s, want %d and %s", s.Epoch(), s.ID(), epoch+1<<20+1, id)
	}
	machine.Must(t, "check", s.Check())
	if got, err := value(s, nil); got != "2" || err != nil {
		t.Errorf("the store has %q: %v", got, err)
	}
	refused(t, w, "data", "has moved to cluster shop (holdfast cluster import)")
	refused(t, w, "node", "is a view of a log")
	if _, err := w.Open("node"); !errors.Is(err, shardlog.ErrExported) {
		t.Errorf("the log opens: %v", err)
	}
}

// refused checks that nothing opens the directory without its log.
func refused(t *testing.T, w *machine.World, dir, want string) {
	t.Helper()
	_, opened := storage.Open(w.Plain(dir))
	_, read := storage.OpenReadOnly(w.Plain(dir))
	_, verified := storage.Verify(t.Context(), w.Plain(dir), storage.Verification{})
	for verb, err := range map[string]error{"Open": opened, "OpenReadOnly": read, "Verify": verified, "Wake": storage.Wake(w.Plain(dir))} {
		if !errors.Is(err, storage.ErrMovedStore) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s of %s: %v, want %q", verb, dir, err, want)
		}
	}
}

// Proves N11: a crash at any step of an import leaves a directory that opens or a log that has begun with it, or neither. Import goes on, and
// Undo takes back what has not begun.
func TestCrashesOfImport(t *testing.T) {
	begin := func(w *machine.World) error { return filled(w, "1") }
	life := func(w *machine.World) error { return options(w).Import(t.Context(), "data", "shop") }
	var directory, neither, log, undone int
	machine.EveryStep(t, prove.Long(), begin, life, func(about string, w *machine.World) {
		begun := w.Head().First > 1
		switch got, err := value(storage.Open(w.Plain("data"))); {
		case err == nil && (begun || got != "1"):
			t.Fatalf("%s: the directory opens with %q, and it is %v that the log has begun", about, got, begun)
		case err == nil:
			directory++
		case !errors.Is(err, storage.ErrMovedStore) || !strings.Contains(err.Error(), "holdfast cluster import") || !strings.Contains(err.Error(), "cluster shop"):
			t.Fatalf("%s: the directory: %v", about, err)
		case begun:
			log++
			if err := options(w).Undo(t.Context(), "data"); !errors.Is(err, storage.ErrMovedStore) {
				t.Fatalf("%s: undo of a log that has begun: %v", about, err)
			}
		default:
			if neither++; neither%2 == 1 {
				undone++
				machine.Must(t, about, options(w).Undo(t.Context(), "data"))
				got, err := value(storage.Open(w.Plain("data")))
				machine.Must(t, about, err)
				if got != "1" {
					t.Errorf("%s: the store that was undone has %q", about, got)
				}
			}
		}
		machine.Must(t, about, life(w))
		refused(t, w, "data", "has moved to cluster shop")
		if got, err := value(node(w, "node")); got != "1" || err != nil {
			t.Fatalf("%s: the log has %q: %v", about, got, err)
		}
	})
	if directory == 0 || neither == 0 || log == 0 || undone == 0 {
		t.Errorf("%d directories opened, %d logs had begun, neither was so %d times, and %d were undone: the crashes miss a part", directory, log, neither, undone)
	}
}

// Proves N11: a crash at any step of an export leaves a log that opens, a directory that opens, or neither. Export goes on.
func TestCrashesOfExport(t *testing.T) {
	for _, dir := range []string{"node", "new"} {
		t.Run(dir, func(t *testing.T) { crashesOfExport(t, dir) })
	}
}

func crashesOfExport(t *testing.T, dir string) {
	begin := func(w *machine.World) error {
		s, err := w.Open("node")
		if err != nil {
			return err
		}
		for i := range 3 {
			_, taken := w.Snapshots().Take(t.Context(), s, w.Term(), "scratch")
			if err := errors.Join(taken, machine.Set(s, "x", fmt.Sprint(i))); err != nil {
				return err
			}
		}
		return errors.Join(w.Snapshots().Trim(t.Context(), w.Term()), machine.Set(s, "x", "last"), s.Close())
	}
	life := func(w *machine.World) error { return options(w).Export(t.Context(), dir) }
	var directory, neither, log int
	machine.EveryStep(t, prove.Long(), begin, life, func(about string, w *machine.World) {
		ended := w.Head().Exported()
		look, err := storage.OpenReadOnly(w.Plain(dir))
		opens := err == nil
		if opens {
			machine.Must(t, about, look.Close())
		}
		switch {
		case opens && !ended:
			t.Fatalf("%s: the directory opens, and the log goes on", about)
		case opens:
			directory++
		case ended:
			neither++
			if _, err := w.Open("another"); !errors.Is(err, shardlog.ErrExported) {
				t.Fatalf("%s: a log that has ended opens: %v", about, err)
			}
			if err := options(w).Export(t.Context(), "another"); !errors.Is(err, shardlog.ErrExported) {
				t.Fatalf("%s: an export to another directory: %v", about, err)
			}
		default:
			log++
		}
		machine.Must(t, about, life(w))
		if got, err := value(storage.Open(w.Plain(dir))); got != "last" || err != nil {
			t.Fatalf("%s: the store has %q: %v", about, got, err)
		}
	})
	if directory == 0 || neither == 0 || log == 0 {
		t.Errorf("%d directories opened, %d logs went on, and neither was so %d times: the crashes miss a part", directory, log, neither)
	}
}

// An import that would lose something changes nothing.
func TestImportRefuses(t *testing.T) {
	w := machine.New(t, -1)
	machine.Must(t, "fill", filled(w, "1"))
	for _, cluster := range []string{"", "a\nb", strings.Repeat("x", 201)} {
		if err := options(w).Import(t.Context(), "data", cluster); err == nil || !strings.Contains(err.Error(), "name of a cluster") {
			t.Errorf("a cluster %.10q: %v", cluster, err)
		}
	}
	if err := (move.Options{}).Import(t.Context(), "data", "shop"); err == nil || !strings.Contains(err.Error(), "Options.Snapshots") {
		t.Errorf("without a log: %v", err)
	}
	if err := options(w).Import(t.Context(), "absent", "shop"); !errors.Is(err, storage.ErrNoDirectory) {
		t.Errorf("an absent directory: %v", err)
	}
	s, err := storage.Open(w.Plain("data"))
	machine.Must(t, "open", err)
	if err := options(w).Import(t.Context(), "data", "shop"); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("an open store: %v", err)
	}
	machine.Must(t, "close", s.Close())
	s, err = w.Open("view") // the log has begun
	machine.Must(t, "open the log", err)
	machine.Must(t, "close", s.Close())
	if err := options(w).Import(t.Context(), "data", "shop"); !errors.Is(err, shardlog.ErrRefused) {
		t.Errorf("a log that has begun: %v", err)
	}
	if err := options(w).Import(t.Context(), "view", "shop"); !errors.Is(err, storage.ErrMovedStore) {
		t.Errorf("a view: %v", err)
	}
	if blobs, err := w.Log.List(t.Context(), 0); len(blobs) > 0 || err != nil {
		t.Errorf("there are %d blobs: %v", len(blobs), err)
	}
	if got, err := value(storage.Open(w.Plain("data"))); got != "1" || err != nil {
		t.Errorf("the store has %q: %v", got, err)
	}
	machine.Must(t, "undo of nothing", options(w).Undo(t.Context(), "data"))
}

// A store that is moving to one cluster does not go to another one.
func TestImportKeepsToItsCluster(t *testing.T) {
	w := machine.New(t, -1)
	machine.Must(t, "fill", filled(w, "1"))
	o := options(w)
	o.Snapshots.Directory = unbegun{w.Log}
	if err := o.Import(t.Context(), "data", "shop"); !errors.Is(err, shardlog.ErrMissing) {
		t.Fatalf("a log that does not begin: %v", err)
	}
	refused(t, w, "data", "is moving to cluster shop: run holdfast cluster import data again, or take the move back with --undo")
	if err := options(w).Import(t.Context(), "data", "other"); !errors.Is(err, storage.ErrMovedStore) || !strings.Contains(err.Error(), "cluster shop") {
		t.Errorf("an import to another cluster: %v", err)
	}
	machine.Must(t, "import", options(w).Import(t.Context(), "data", "shop"))
	for _, cluster := range []string{"other", "shop2"} {
		if err := options(w).Import(t.Context(), "data", cluster); !errors.Is(err, storage.ErrMovedStore) || !strings.Contains(err.Error(), "cluster shop") {
			t.Errorf("an import to another cluster: %v", err)
		}
	}
	if err := options(w).Undo(t.Context(), "data"); !errors.Is(err, storage.ErrMovedStore) {
		t.Errorf("undo of an import that is done: %v", err)
	}
}

// unbegun refuses to begin.
type unbegun struct{ shardlog.Directory }

func (unbegun) Begin(context.Context, int, shardlog.Snapshot) error { return shardlog.ErrMissing }

// Proves N11: an import that was cut off at its end goes on though its base is truncated by now, because later snapshots have the id of the store.
func TestImportGoesOnLater(t *testing.T) {
	w := machine.New(t, -1)
	machine.Must(t, "fill", filled(w, "1"))
	o := options(w)
	o.Snapshots.Directory = unheard{w.Log}
	if err := o.Import(t.Context(), "data", "shop"); !errors.Is(err, shardlog.ErrUnknown) {
		t.Fatalf("a begin whose answer is lost: %v", err)
	}
	refused(t, w, "data", "is moving to cluster shop")
	s, err := node(w, "node")
	machine.Must(t, "open the log", err)
	for i := range 3 {
		machine.Must(t, "commit", machine.Set(s, "x", fmt.Sprint(i)))
		_, err := w.Snapshots().Take(t.Context(), s, w.Term(), "scratch")
		machine.Must(t, "take", err)
	}
	machine.Must(t, "trim", w.Snapshots().Trim(t.Context(), w.Term()))
	machine.Must(t, "close", s.Close())
	if err := options(w).Undo(t.Context(), "data"); !errors.Is(err, storage.ErrMovedStore) {
		t.Errorf("undo: %v", err)
	}
	machine.Must(t, "import", options(w).Import(t.Context(), "data", "shop"))
	refused(t, w, "data", "has moved to cluster shop")
}

// unheard begins, and its answer is lost.
type unheard struct{ shardlog.Directory }

func (u unheard) Begin(ctx context.Context, shard int, base shardlog.Snapshot) error {
	return errors.Join(u.Directory.Begin(ctx, shard, base), shardlog.ErrUnknown)
}

// Proves N11: an export goes to one directory; an operator who knows that it is lost may choose another.
func TestExportGoesToOneDirectory(t *testing.T) {
	w := machine.New(t, -1)
	s, err := w.Open("node")
	machine.Must(t, "open", err)
	machine.Must(t, "commit", machine.Set(s, "x", "1"))
	if err := options(w).Export(t.Context(), "node"); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("an open view: %v", err)
	}
	machine.Must(t, "close", s.Close())
	machine.Must(t, "fill", filled(w, "own"))
	if err := options(w).Export(t.Context(), "data"); !errors.Is(err, storage.ErrMovedStore) {
		t.Errorf("a store of its own: %v", err)
	}
	machine.Must(t, "export", options(w).Export(t.Context(), "first"))
	for _, dir := range []string{"second", "node", "data"} {
		if err := options(w).Export(t.Context(), dir); !errors.Is(err, shardlog.ErrExported) && !errors.Is(err, storage.ErrMovedStore) {
			t.Errorf("an export to %s: %v", dir, err)
		}
	}
	o := options(w)
	o.Again = true
	machine.Must(t, "export again", o.Export(t.Context(), "second"))
	if got, err := value(storage.Open(w.Plain("second"))); got != "1" || err != nil {
		t.Errorf("the store has %q: %v", got, err)
	}
	ended := errors.New("the operator gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	if err := options(w).Export(ctx, "third"); !errors.Is(err, ended) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// A store that was exported goes into another log and back again. The row of the first export is no licence for the second.
func TestThereAndBackTwice(t *testing.T) {
	w := machine.New(t, -1)
	machine.Must(t, "fill", filled(w, "1"))
	for shard := range 2 {
		o := options(w)
		o.Snapshots.Shard = shard
		machine.Must(t, "import", o.Import(t.Context(), fmt.Sprint("data", strings.Repeat("-back", shard)), "shop"))
		machine.Must(t, "export", o.Export(t.Context(), fmt.Sprint("data", strings.Repeat("-back", shard+1))))
		if _, err := o.Snapshots.Restore(t.Context(), fmt.Sprint("stray", shard)); err != nil {
			t.Errorf("a restore of a log that has ended: %v", err)
		}
		if err := o.Export(t.Context(), fmt.Sprint("stray", shard)); !errors.Is(err, shardlog.ErrExported) {
			t.Errorf("an export of another view: %v", err)
		}
	}
	if got, err := value(storage.Open(w.Plain("data-back-back"))); got != "1" || err != nil {
		t.Errorf("the store has %q: %v", got, err)
	}
}

// points is a probe that keeps the names of this package's points.
type points struct{ names []string }

func (p *points) At(at seam.Point) {
	if strings.HasPrefix(at.Name, "import/") || strings.HasPrefix(at.Name, "export/") {
		p.names = append(p.names, at.Name)
	}
}

// A simulation meets each step of both ways.
func TestPoints(t *testing.T) {
	w := machine.New(t, -1)
	machine.Must(t, "fill", filled(w, "1"))
	p := new(points)
	o := options(w)
	o.Snapshots.Seams.Probe = p
	machine.Must(t, "import", o.Import(t.Context(), "data", "shop"))
	machine.Must(t, "export", o.Export(t.Context(), "back"))
	want := "import/uploaded import/moving import/begun import/moved export/closed export/detached"
	if got := strings.Join(p.names, " "); got != want {
		t.Errorf("the points are %s, want %s", got, want)
	}
}

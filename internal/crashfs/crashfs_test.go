package crashfs_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
)

// step is one change of a file system.
type step func(vfs.FS) error

func create(name, synced, more string) step {
	return func(fsys vfs.FS) error {
		f, err := fsys.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		_, err = f.Write([]byte(synced))
		err = errors.Join(err, f.Sync())
		_, moreErr := f.Write([]byte(more))
		return errors.Join(err, moreErr, f.Close())
	}
}

func remove(name string) step { return func(fsys vfs.FS) error { return fsys.Remove(name) } }

func rename(from, to string) step { return func(fsys vfs.FS) error { return fsys.Rename(from, to) } }

func syncDir(fsys vfs.FS) error {
	d, err := fsys.OpenDir("")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// take is an FS to which the steps were done.
func take(t *testing.T, steps ...step) *crashfs.FS {
	t.Helper()
	fsys := crashfs.New(vfs.NewCrashableMem(), nil)
	for _, s := range steps {
		if err := s(fsys); err != nil {
			t.Fatal(err)
		}
	}
	return fsys
}

// image is the image of a moment, as text.
func image(t *testing.T, of func(crashfs.Keep) (*vfs.MemFS, error), keep crashfs.Keep) map[string]string {
	t.Helper()
	left, err := of(keep)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for name, data := range crashfs.Read(left) {
		out[name] = string(data)
	}
	return out
}

func wantImage(t *testing.T, got map[string]string, want map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// A removal and a rename that were not synced are undone by the loss of all, and
// stand when all is kept.
func TestNamesAreKeptOrLostTogether(t *testing.T) {
	fsys := take(t, create("a", "1", ""), create("b", "2", ""), syncDir,
		remove("a"), rename("b", "c"), create("d", "3", ""))
	lost, kept := map[string]string{"a": "1", "b": "2"}, map[string]string{"c": "2", "d": "3"}
	wantImage(t, image(t, fsys.Crash, crashfs.KeepNone), lost)
	wantImage(t, image(t, fsys.Crash, crashfs.KeepAll), kept)
	both := map[string]bool{}
	for seed := range crashfs.Keep(20) {
		got := image(t, fsys.Crash, seed+1)
		if !maps.Equal(got, lost) {
			wantImage(t, got, kept)
		}
		both[got["d"]] = true
	}
	if len(both) != 2 {
		t.Error("20 seeds always kept or always lost the names")
	}
}

// A file is not mixed with an older file of the same name.
func TestReplacedFile(t *testing.T) {
	fsys := take(t, create("a", "old and long", ""), syncDir, create("b", "new", ""), rename("b", "a"))
	for seed := range crashfs.Keep(20) {
		got := image(t, fsys.Crash, seed+1)["a"]
		if got != "old and long" && got != "new" {
			t.Errorf("seed %d: the file holds %q", seed+1, got)
		}
	}
}

// A file that was there from the start is synced, also under another name.
func TestRenameOfAFileFromTheStart(t *testing.T) {
	mem, err := crashfs.Tree{"a": []byte("old")}.Write()
	if err != nil {
		t.Fatal(err)
	}
	fsys := crashfs.New(mem, nil)
	if err := rename("a", "b")(fsys); err != nil {
		t.Fatal(err)
	}
	for seed := range crashfs.Keep(20) {
		got := image(t, fsys.Crash, seed+1)
		if got["a"]+got["b"] != "old" {
			t.Errorf("seed %d: left is %q", seed+1, got)
		}
	}
}

// Each block that was not synced is kept, or lost, or zero below one that is kept.
func TestBlocksAreTorn(t *testing.T) {
	const block = 4096
	more := strings.Repeat("b", block-1) + strings.Repeat("c", block) + strings.Repeat("d", block)
	fsys := take(t, create("a", "a", more), syncDir)
	wantImage(t, image(t, fsys.Crash, crashfs.KeepNone), map[string]string{"a": "a"})
	wantImage(t, image(t, fsys.Crash, crashfs.KeepAll), map[string]string{"a": "a" + more})
	seen := map[string]bool{}
	for seed := range crashfs.Keep(100) {
		got := image(t, fsys.Crash, seed+1)["a"]
		if again := image(t, fsys.Crash, seed+1)["a"]; again != got {
			t.Errorf("seed %d gives two images", seed+1)
		}
		if got[0] != 'a' || len(got) > 1 && len(got)%block != 0 {
			t.Errorf("seed %d: %d bytes are left, which begin with %q", seed+1, len(got), got[0])
		}
		shape := ""
		for from := 0; from < len(got); from += block {
			shape += got[min(from+1, len(got)-1):][:1]
		}
		seen[shape] = true
	}
	if len(seen) != 8 {
		t.Errorf("100 seeds gave %d of the 8 images: %v", len(seen), seen)
	}
}

// Without a journal each name goes its own way, so both names of a rename may be
// lost, or both be left.
func TestScatter(t *testing.T) {
	fsys := take(t, create("a", "1", ""), syncDir, rename("a", "b"))
	seen := map[string]bool{}
	for seed := range crashfs.Keep(50) {
		got := image(t, fsys.Capture().Scatter, seed)
		if again := image(t, fsys.Capture().Scatter, seed); !maps.Equal(got, again) {
			t.Errorf("seed %d gives two images", seed)
		}
		seen[got["a"]+" "+got["b"]] = true
	}
	if len(seen) != 4 {
		t.Errorf("50 seeds gave %d of the 4 images: %v", len(seen), seen)
	}
}

// The function sees each operation before it is done, and can refuse it.
func TestRefusedOperation(t *testing.T) {
	full := errors.New("full")
	var ops []string
	fsys := crashfs.New(vfs.NewCrashableMem(), func(op crashfs.Op) error {
		ops = append(ops, op.String())
		if op.Kind == "sync" {
			return full
		}
		return nil
	})
	if err := create("a", "1", "2")(fsys); !errors.Is(err, full) {
		t.Errorf("the error is %v", err)
	}
	want := []string{"operation 0: create a", "operation 1: write a", "operation 2: sync a", "operation 3: write a"}
	if d := cmp.Diff(want, ops); d != "" || fsys.Count() != len(want) {
		t.Errorf("%d operations, -want +got:\n%s", fsys.Count(), d)
	}
}

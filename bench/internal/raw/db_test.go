package raw_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/storage"
)

// TestReferenceHasOurOptions compares the options that Pebble writes down in a store of
// ours and in a database of the reference.
func TestReferenceHasOurOptions(t *testing.T) {
	ours, theirs := t.TempDir(), t.TempDir()
	s, err := storage.Open(storage.Options{Dir: ours})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, err := raw.Open(theirs, vfs.Default)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	want, got := options(t, ours), options(t, theirs)
	if !slices.Equal(got, want) {
		t.Errorf("options of the reference\n%s\nof the store\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// options are the lines of the newest options file in dir.
func options(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "OPTIONS-*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no options file in %s: %v", dir, err)
	}
	slices.Sort(files)
	b, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(b), "\n")
}

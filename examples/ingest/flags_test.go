package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/storage"
)

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		args   string
		err    error
		stdout string
		stderr string
	}{
		{"", nil, "", ""},
		{"-src a -data b -workers 3 -fresh -json", nil, "", ""},
		{"-h", flag.ErrHelp, "-workers", ""},
		{"-workers 1", nil, "", ""},
		{"-workers 1024", nil, "", ""},
		{"-workers 1025", errUsage, "", "it must be from 1 to 1024"},
		{"-workers 0", errUsage, "", "it must be from 1 to 1024"},
		{"-workers x", errUsage, "", "-workers"},
		{"-wat", errUsage, "", "-h helps"},
		{"dir", errUsage, "", "name the directory with -src"},
	} {
		var stdout, stderr strings.Builder
		_, err := parseFlags(strings.Fields(c.args), &stdout, &stderr)
		if err != c.err || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%q: %v, stdout %q, stderr %q", c.args, err, stdout.String(), stderr.String())
		}
		if c.stderr != "" && len(sentences(stderr.String())) != 1 {
			t.Errorf("%q: stderr is not one sentence: %q", c.args, stderr.String())
		}
		wantNarrow(t, stdout.String()+stderr.String())
	}
}

// The help has a line for each flag, and tells its default.
func TestHelpTellsOfEachFlag(t *testing.T) {
	_, after, ok := strings.Cut(usage, "Flags:\n")
	if !ok || !strings.Contains(usage, "Example:") {
		t.Fatalf("the help has no flags or no example:\n%s", usage)
	}
	all := flags(new(settings))
	all.VisitAll(func(f *flag.Flag) {
		_, text, ok := strings.Cut(after, "\n  -"+f.Name+" ")
		text, _, _ = strings.Cut(text, "\n  -")
		if !ok || !strings.Contains(text, "(default:") {
			t.Errorf("the help does not tell of -%s with its default: %q", f.Name, text)
		}
		if f.Name == "workers" && !strings.Contains(text, "(default: "+f.DefValue+")") {
			t.Errorf("the default of -workers is %s, not as in %q", f.DefValue, text)
		}
	})
}

// The error of a run with -fresh tells the user to repeat the command without -fresh,
// because -fresh would begin anew.
func TestAgain(t *testing.T) {
	full := fmt.Errorf("turn: %w: 9 MiB are free", storage.ErrNoSpace)
	for _, c := range []struct {
		fresh bool
		want  string
	}{
		{false, "the disk of d is full: 9 MiB are free: free some and run the same command; nothing is lost"},
		{true, "the disk of d is full: 9 MiB are free: free some and run the same command without -fresh; nothing is lost"},
	} {
		if got := explain(full, settings{data: "d", fresh: c.fresh}); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// A store that cannot be made, or is not writable, is told of in one sentence.
func TestStoreThatCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file", "")
	if err := makeStore(filepath.Join(dir, "a/b/c")); err != nil {
		t.Errorf("a directory that is missing: %v", err)
	}
	err := makeStore(filepath.Join(dir, "file/store"))
	want := "the store cannot be in " + filepath.Join(dir, "file/store") + ": not a directory: name another directory with -data"
	if got := explain(err, settings{}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, cause := range []error{syscall.EACCES, syscall.EROFS} {
		err := cannotOpen("d", fmt.Errorf("d: %w", &fs.PathError{Op: "open", Path: "d/LOCK", Err: cause}))
		want := "the store cannot be in d: " + cause.Error() + ": name another directory with -data"
		if got := explain(err, settings{}); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if err := cannotOpen("d", storage.ErrFormat); err != storage.ErrFormat {
		t.Errorf("another error became %v", err)
	}
}

// -fresh deletes a store, also one that cannot be opened, and nothing else.
func TestDiscard(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	if err := discard(store); err != nil {
		t.Errorf("without a store: %v", err)
	}
	s, err := storage.Open(storage.Options{Dir: store})
	if err != nil {
		t.Fatal(err)
	}
	if err := discard(store); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("an open store: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, store, "HOLDFAST", "holdfast store\nformat 999\n")
	if err := discard(store); err != nil {
		t.Errorf("a store of another format: %v", err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
	write(t, store, "letter.txt", "dear")
	if err := discard(store); !errors.Is(err, storage.ErrNotStore) {
		t.Errorf("a directory with other files: %v", err)
	}
	if _, err := os.Stat(filepath.Join(store, "letter.txt")); err != nil {
		t.Error(err)
	}
}

package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
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
		{"-workers 0", errUsage, "", "it must be from 1 to 1024"},
		{"-workers x", errUsage, "", "-workers"},
		{"-wat", errUsage, "", "-h lists the flags"},
		{"dir", errUsage, "", "name the directory with -src"},
	} {
		var stdout, stderr strings.Builder
		_, err := parseFlags(strings.Fields(c.args), &stdout, &stderr)
		if err != c.err || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%q: %v, stdout %q, stderr %q", c.args, err, stdout.String(), stderr.String())
		}
		if c.stderr != "" && strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%q: stderr is not one line: %q", c.args, stderr.String())
		}
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

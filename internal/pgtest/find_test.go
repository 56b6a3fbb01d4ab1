package pgtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The newest PostgreSQL that Debian has installed is found without PATH, an old one is not, and else it is that of PATH.
func TestFind(t *testing.T) {
	was, dir := root, t.TempDir()
	defer func() { root = was }()
	root = filepath.Join(dir, "lib")
	t.Setenv("PATH", filepath.Join(dir, "path"))
	install := func(elements ...string) string {
		bin := filepath.Join(append([]string{dir}, elements...)...)
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bin, "initdb"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return bin
	}
	install("lib", "14", "bin")
	if bin, err := Find(); err == nil || !strings.Contains(err.Error(), "apt-get install") {
		t.Errorf("with version 14 alone: %q, %v", bin, err)
	}
	for _, place := range [][]string{{"path"}, {"lib", "15", "bin"}, {"lib", "100", "bin"}} {
		want := install(place...)
		if bin, err := Find(); bin != want || err != nil {
			t.Errorf("%q, want %q: %v", bin, want, err)
		}
	}
}

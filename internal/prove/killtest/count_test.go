package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

func TestCountTakesWhatFindTakes(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"a.go": "package a\n", "b/c.go": "package b", "b/new\nline.go": "\n\n", "b/.go": "", "b/d.txt": "no\n",
	} {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "a.go"), filepath.Join(dir, "link.go")); err != nil {
		t.Fatal(err)
	}
	got, err := count(context.Background(), dir)
	if want := (totals{Files: 4, Bytes: 21, Lines: 3}); got != want || err != nil {
		t.Errorf("counted %v, %v, want %v", got, err, want)
	}
}

func TestParseResult(t *testing.T) {
	r, err := parseResult([]byte("tables\n{\"files\":3,\"bytes\":20,\"lines\":2,\"dead\":1,\"recovered\":4,\"executions\":7,\"openings\":2}\n"))
	want := result{totals: totals{3, 20, 2}, Dead: 1, Recovered: 4, Executions: 7, Openings: 2}
	if r != want || err != nil {
		t.Errorf("parsed %+v, %v, want %+v", r, err, want)
	}
	if _, err := parseResult([]byte("Stopped.\n")); err == nil {
		t.Error("a line that is not JSON was taken")
	}
}

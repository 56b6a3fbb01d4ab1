package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// treeOf makes a tree of files in memory, by their paths.
func treeOf(texts map[string]string) fstest.MapFS {
	tree := make(fstest.MapFS)
	for path, text := range texts {
		tree[path] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}

// forest writes a tree with some packages, and returns its directory.
func forest(t *testing.T, packages int) string {
	t.Helper()
	root := t.TempDir()
	for i := range packages {
		text := fmt.Sprintf("// Package p has %s and is %s.\npackage p\n\n// F%d grows.\nfunc F%d() {}\n", terms[i%3], terms[i%5], i, i)
		plant(t, root, fmt.Sprintf("p%d/p.go", i), text)
	}
	return root
}

var terms = []string{"oak", "elm", "ash", "birch", "alder"}

// plant writes a file of a tree.
func plant(t *testing.T, root, path, text string) {
	t.Helper()
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

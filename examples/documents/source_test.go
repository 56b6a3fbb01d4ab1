package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const empty = "package p\n"

// Packages are the directories that the go command would take, and documents their files
// without tests.
func TestFindPackages(t *testing.T) {
	tree := treeOf(map[string]string{
		"net/b.go": empty, "net/a.go": empty, "net/a_test.go": empty, "net/z.go": empty, "net/.c.go": empty, "net/_d.go": empty,
		"net/http/x.go": empty, "net/testdata/y.go": empty, "net/.git/y.go": empty, "_old/y.go": empty,
		"only/x_test.go": empty, "text/x.txt": empty, "top.go": empty,
	})
	ctx := context.Background()
	all := []string{".", "net", "net/http"}
	for limit, want := range [][]string{all, all[:1], all[:2], all, all} {
		if got, err := findPackages(ctx, tree, limit, 3); err != nil || !slices.Equal(got, want) {
			t.Errorf("with the limit %d: %q, %v, want %q", limit, got, err, want)
		}
	}
	if _, err := findPackages(ctx, tree, 0, 2); err == nil || err.Error() != "the tree has 3 packages, and 2 are the most: read fewer with -n" {
		t.Errorf("of a tree that is too large: %v", err)
	}
	if got, err := findPackages(ctx, tree, 2, 2); err != nil || len(got) != 2 {
		t.Errorf("with a limit at the bound: %q, %v", got, err)
	}
	for dir, want := range map[string][]string{".": {"top.go"}, "net": {"net/a.go", "net/b.go", "net/z.go"}, "only": nil} {
		if got, err := documentsOf(tree, dir); err != nil || !slices.Equal(got, want) {
			t.Errorf("documents of %s: %q, %v, want %q", dir, got, err, want)
		}
	}
}

func TestFindPackagesFails(t *testing.T) {
	if _, err := findPackages(context.Background(), treeOf(map[string]string{"a/x_test.go": empty}), 0, 3); err == nil || err.Error() != "the tree has no Go files" {
		t.Errorf("of a tree without Go files: %v", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := findPackages(ended, treeOf(map[string]string{"a/x.go": empty}), 0, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancel: %v", err)
	}
	if _, err := documentsOf(treeOf(nil), "absent"); err == nil {
		t.Error("an absent directory has documents")
	}
}

func TestSourceOf(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "file", "")
	for path, want := range map[string]string{
		"file":   "is a file: name a directory with -src",
		"absent": "does not exist: name a directory with -src",
	} {
		if _, err := sourceOf(filepath.Join(root, path)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if got, err := sourceOf(root); err != nil || got != root {
		t.Errorf("a directory: %s, %v", got, err)
	}
	if got, err := sourceOf(""); err != nil || filepath.Base(got) != "src" {
		t.Errorf("the toolchain: %s, %v", got, err)
	}
}

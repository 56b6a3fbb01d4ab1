package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/object"
)

// packagesMax bounds the packages of a tree, because their names are the value of one step,
// which may have 2 MiB.
const packagesMax = 10_000

// toolchainSource is the Go toolchain's own source tree.
func toolchainSource() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if root := strings.TrimSpace(string(out)); err == nil && root != "" {
		return filepath.Join(root, "src"), nil
	}
	return "", errors.New("the Go toolchain is not there: name a directory with -src")
}

// sourceOf returns the absolute path of the tree to read.
func sourceOf(dir string) (root string, err error) {
	if dir == "" {
		if dir, err = toolchainSource(); err != nil {
			return "", err
		}
	}
	if root, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	info, err := os.Stat(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s does not exist: name a directory with -src", root)
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("%s is a file: name a directory with -src", root)
	}
	return root, nil
}

// findPackages returns the directories of a tree that have documents, sorted: at most limit,
// or all if limit is 0. More than most are an error.
func findPackages(ctx context.Context, tree fs.FS, limit, most int) ([]string, error) {
	dirs := make(map[string]bool)
	err := fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && name != "." && ignored(e.Name()):
			return fs.SkipDir
		case isDocument(e):
			dirs[path.Dir(name)] = true
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	found := slices.Sorted(maps.Keys(dirs))
	if limit > 0 {
		found = found[:min(limit, len(found))]
	}
	switch {
	case len(found) == 0:
		return nil, object.Permanent(errors.New("the tree has no Go files"))
	case len(found) > most:
		return nil, object.Permanent(fmt.Errorf("the tree has %d packages, and %d are the most: read fewer with -n", len(found), most))
	}
	return found, nil
}

// ignored reports whether a directory is one that the go command passes over.
func ignored(name string) bool {
	return name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

// isDocument reports whether an entry of a directory is a Go file with code that is no test.
func isDocument(e fs.DirEntry) bool {
	name := e.Name()
	return e.Type().IsRegular() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
		!strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "_")
}

// documentsOf returns the paths of the documents of a package.
func documentsOf(tree fs.FS, dir string) (paths []string, err error) {
	entries, err := fs.ReadDir(tree, dir)
	for _, e := range entries {
		if isDocument(e) {
			paths = append(paths, path.Join(dir, e.Name()))
		}
	}
	return paths, err
}

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// stamp tells one state of a file from another without reading it. The zero
// stamp is that of no file.
type stamp struct {
	Exists bool  `json:"exists"`
	Size   int64 `json:"size"`
	Mod    int64 `json:"mod"` // nanoseconds since 1970
}

func stampOf(info fs.FileInfo) stamp { return stamp{true, info.Size(), info.ModTime().UnixNano()} }

// found is a Go file that the walk has come to.
type found struct {
	path  string // escaped, see escape
	stamp stamp
}

// source is the directory that is indexed.
type source struct{ root string }

// openSource checks that dir is a directory that can be read.
func openSource(dir string) (source, error) {
	root, err := filepath.Abs(dir)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return source{}, sourceError(dir, err)
	}
	info, err := os.Stat(root)
	switch {
	case err != nil:
		return source{}, sourceError(dir, err)
	case !info.IsDir():
		return source{}, fmt.Errorf("%s is a file: name a directory with -src", dir)
	}
	d, err := os.Open(root)
	if err == nil {
		_, err = d.ReadDir(1)
		d.Close()
	}
	if err != nil && !isEOF(err) {
		return source{}, sourceError(dir, err)
	}
	return source{root}, nil
}

// sourceError tells the fault of -src in one line.
func sourceError(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist: name a directory with -src", dir)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s cannot be read: permission denied: name another directory with -src, or change its mode", dir)
	}
	return fmt.Errorf("%s: %w: name a directory with -src", dir, err)
}

// walk calls visit for each regular file below the source with a name that ends in .go,
// as `find -name '*.go' -type f` lists them, and returns the directories that could not
// be read. Symbolic links are not followed.
func (s source) walk(ctx context.Context, visit func(found) error) (unread []string, err error) {
	err = filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rel, _ := filepath.Rel(s.root, path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && rel != ".":
			return nil // it went while we walked
		case err != nil && rel == ".":
			return sourceError(s.root, err)
		case err != nil:
			unread = append(unread, rel)
			return nil
		case !d.Type().IsRegular() || !strings.HasSuffix(d.Name(), ".go"):
			return nil
		}
		f := found{path: escape(filepath.ToSlash(rel)), stamp: stamp{Exists: true}}
		info, err := d.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err == nil:
			f.stamp = stampOf(info)
		}
		return visit(f) // if it cannot be looked at, its task will say why
	})
	return unread, err
}

// file is where an escaped path lies.
func (s source) file(path string) string {
	rel, err := url.PathUnescape(path)
	if err != nil {
		rel = path
	}
	return filepath.Join(s.root, filepath.FromSlash(rel))
}

// escape makes a path of any bytes into UTF-8 that JSON keeps as it is: bytes
// that are not UTF-8, and %, become %XX.
func escape(path string) string {
	if utf8.ValidString(path) && !strings.Contains(path, "%") {
		return path
	}
	var b strings.Builder
	for i := 0; i < len(path); {
		r, n := utf8.DecodeRuneInString(path[i:])
		if r == '%' || r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "%%%02X", path[i])
		} else {
			b.WriteString(path[i : i+n])
		}
		i += n
	}
	return b.String()
}

// nameMax is the longest path that is used as the name of an object itself.
const nameMax = 400

// nameOf is the name of the object of a path.
func nameOf(path string) string {
	if len(path) <= nameMax {
		return path
	}
	return fmt.Sprintf("%%%%%x", sha256.Sum256([]byte(path))) // no escaped path has %%
}

// packageOf is the top-level package of a path: its first element, or "." for a
// file at the root.
func packageOf(path string) string {
	if top, _, ok := strings.Cut(path, "/"); ok {
		if len(top) > nameMax {
			return nameOf(top)
		}
		return top
	}
	return "."
}

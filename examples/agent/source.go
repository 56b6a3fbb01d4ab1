package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is the queue of the agent: the Go files of a tree, in order.
type source struct {
	tree  fs.FS
	paths []string
}

// newSource finds the files of a tree: limit at most, or all if limit is 0.
func newSource(tree fs.FS, limit int) (*source, error) {
	s := &source{tree: tree}
	err := fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case limit > 0 && len(s.paths) == limit:
			return fs.SkipAll
		case e.Type().IsRegular() && strings.HasSuffix(name, ".go"):
			s.paths = append(s.paths, name)
		}
		return nil
	})
	if err == nil && len(s.paths) == 0 {
		err = errors.New("the tree has no Go files: name another with -src")
	}
	return s, err
}

// note marks a line about work that is left. It is written in two parts, because no file of this
// repository has one.
const note = "TO" + "DO"

// observe reads the file at a place of the queue. One that cannot be read is an observation
// too.
func (s *source) observe(place int) observation {
	o := observation{Path: s.paths[place]}
	text, err := fs.ReadFile(s.tree, o.Path)
	if err != nil {
		o.Broken = true
		return o
	}
	for line := range bytes.Lines(text) {
		o.Lines++
		if bytes.Contains(line, []byte(note)) || bytes.Contains(line, []byte("BUG")) {
			o.Notes++
		}
		o.Unsafe = o.Unsafe || bytes.Contains(line, []byte(`"unsafe"`))
	}
	return o
}

// rootOf returns the absolute path of the tree to look at.
func rootOf(dir string) (string, error) {
	if dir == "" {
		out, err := exec.Command("go", "env", "GOROOT").Output()
		root := strings.TrimSpace(string(out))
		if err != nil || root == "" {
			return "", errors.New("the Go toolchain is not there: name a directory with -src")
		}
		dir = filepath.Join(root, "src")
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is no directory: name one with -src", root)
	}
	return root, nil
}

package main

import (
	"bytes"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
)

// measure is the numbers that one file adds to the totals of its package.
type measure struct {
	Bytes    int64    `json:"bytes"`
	Lines    int64    `json:"lines"`              // newline bytes, as wc -l counts
	Imports  []string `json:"imports,omitempty"`  // sorted, each once
	Unparsed bool     `json:"unparsed,omitempty"` // its imports could not be read
}

// measureFile reads a file. The stamp is that of the file which was read; a file
// that is not there has no measure and the zero stamp.
func measureFile(path string) (*measure, stamp, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, stamp{}, nil
	}
	if err != nil {
		return nil, stamp{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, stamp{}, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, stamp{}, err
	}
	m := measureText(text)
	return &m, stampOf(info), nil
}

func measureText(text []byte) measure {
	m := measure{Bytes: int64(len(text)), Lines: int64(bytes.Count(text, []byte{'\n'}))}
	var ok bool
	m.Imports, ok = importsOf(text)
	m.Unparsed = !ok
	return m
}

// A file that imports more is not taken for Go. The bounds keep an event and a key of
// the store small, because a file may hold anything.
const (
	importsMax     = 2000
	importMaxBytes = 500
)

// importsOf reads the imports of a Go file; ok is false if it is not one.
func importsOf(text []byte) (imports []string, ok bool) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ImportsOnly)
	if err != nil || len(file.Imports) > importsMax {
		return nil, false
	}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || path == "" || len(path) > importMaxBytes {
			return nil, false
		}
		imports = append(imports, path)
	}
	slices.Sort(imports)
	return slices.Compact(imports), true
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

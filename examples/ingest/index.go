package main

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/object"
)

// change is one event: a new version of a file subtracts and adds numbers of its
// package's totals.
type change struct {
	ID    string   `json:"id"`   // the name of the file's object and the version
	Path  string   `json:"path"` // escaped
	Minus *measure `json:"minus,omitempty"`
	Plus  *measure `json:"plus,omitempty"`
}

// entry is the stored row of a file: its last version, and the change that it was.
type entry struct {
	Version int    `json:"version"`
	Stamp   stamp  `json:"stamp"`
	Change  change `json:"change"`
}

// indexed is the object of one file. It decides once on the change of each version: a
// task that repeats a version, after a crash for example, gets the change that was
// stored first.
type indexed struct {
	st    *object.State
	entry entry
}

var (
	files  = object.Define("file", newIndexed)
	look   = object.Handle(files, "look", (*indexed).look)
	record = object.Handle(files, "record", (*indexed).record)
)

func newIndexed(ctx context.Context, st *object.State) (*indexed, error) {
	f := &indexed{st: st}
	_, err := st.Storage().GetInto(ctx, "entry", &f.entry)
	return f, err
}

// lookAnswer tells whether a file must be read.
type lookAnswer struct {
	Changed bool
	Version int    // the version that reading it will make
	Path    string // escaped; empty if nothing is stored
}

// look compares a file as it is with the version that is stored.
func (f *indexed) look(_ context.Context, now stamp) (lookAnswer, error) {
	return lookAnswer{f.entry.Stamp != now, f.entry.Version + 1, f.entry.Change.Path}, nil
}

// reading is a file as a worker has read it.
type reading struct {
	Path    string
	Stamp   stamp
	Measure *measure // nil: there is no such file any more
}

// record makes a reading the file's version, and returns the change that it is. A
// version that is stored already is not made again: its change is returned. Nil
// means that there is nothing to tell: no such file was ever known.
func (f *indexed) record(ctx context.Context, r reading) (*change, error) {
	if f.entry.Stamp == r.Stamp {
		if f.entry.Version == 0 {
			return nil, nil
		}
		known := f.entry.Change
		return &known, nil
	}
	next := entry{Version: f.entry.Version + 1, Stamp: r.Stamp}
	next.Change = change{
		ID: fmt.Sprintf("%s#%d", f.st.Name(), next.Version), Path: r.Path,
		Minus: f.entry.Change.Plus, Plus: r.Measure,
	}
	if err := f.st.Storage().Put(ctx, "entry", next); err != nil {
		return nil, err
	}
	f.entry = next
	return &next.Change, nil
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// directory is where a run keeps the worker's store and the payment server's book, so that
// a later run can go on. It is locked while one of the processes lives, because two
// payment servers with one book would both charge.
type directory struct {
	path string
	lock *os.File
	temp bool // made for this run
}

func (d *directory) store() string { return filepath.Join(d.path, "store") }
func (d *directory) book() string  { return filepath.Join(d.path, "book.jsonl") }
func (d *directory) note() string  { return filepath.Join(d.path, "run.json") }

// note is how many orders the run of a directory has. A run that goes on must have as many,
// because the judge knows only its own.
type note struct {
	Orders int `json:"orders"`
}

// openDirectory makes the directory and locks it. With an empty path it is a new one for
// temporary files. The lock is tried for a while, because the children of a program that was
// killed hold it until they have ended.
func openDirectory(path string, orders int, limit time.Duration) (*directory, error) {
	d := &directory{path: path, temp: path == ""}
	err := error(nil)
	if d.temp {
		d.path, err = os.MkdirTemp("", "holdfast-orders-")
	} else {
		err = os.MkdirAll(path, 0o755)
	}
	if err != nil {
		return nil, err
	}
	if d.lock, err = d.lockWithin(limit); err != nil {
		return nil, fmt.Errorf("%s is in use by another run: wait until it has ended, or name another directory with -dir (%w)", d.path, err)
	}
	if err := d.remember(note{orders}); err != nil {
		return nil, errors.Join(err, d.lock.Close())
	}
	return d, nil
}

func (d *directory) lockWithin(limit time.Duration) (f *os.File, err error) {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if f, err = lockFile(filepath.Join(d.path, "lock")); err == nil || time.Since(began) > limit {
			return f, err
		}
	}
}

// remember writes the note, or compares it with the one that is there.
func (d *directory) remember(n note) error {
	text, err := os.ReadFile(d.note())
	if errors.Is(err, fs.ErrNotExist) {
		return d.write(n)
	}
	if err != nil {
		return err
	}
	var was note
	if err := json.Unmarshal(text, &was); err != nil {
		return fmt.Errorf("%s is damaged: name another directory with -dir", d.note())
	}
	if was != n {
		return fmt.Errorf("%s has a run of %d orders: go on with -n %d, or name another directory with -dir", d.path, was.Orders, was.Orders)
	}
	return nil
}

// write puts the note into place as a whole.
func (d *directory) write(n note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.note()+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(d.note()+".new", d.note())
}

// close unlocks the directory. With remove it deletes one that was made for this run.
func (d *directory) close(remove bool) error {
	if err := d.lock.Close(); err != nil || !remove || !d.temp {
		return err
	}
	return os.RemoveAll(d.path)
}

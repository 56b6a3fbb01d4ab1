package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// advice is an error of Open with its remedy.
type advice struct {
	cause error
	text  string
	kind  error // a sentinel that errors.Is matches too; nil: none
}

// Error is the cause and then the remedy, in one line.
func (a *advice) Error() string { return a.cause.Error() + ": " + a.text }

// Unwrap lets errors.Is find the cause and the sentinel.
func (a *advice) Unwrap() []error {
	if a.kind == nil {
		return []error{a.cause}
	}
	return []error{a.cause, a.kind}
}

// advised adds its remedy to an error of the file system. The store's own errors say
// theirs already.
func advised(dir string, err error) error {
	return remedy(dir, "write to", err)
}

// advisedReader is advised for OpenReadOnly.
func advisedReader(dir string, err error) error { return remedy(dir, "read", err) }

// remedy is advised for a process that must be able to do something with the files.
func remedy(dir, do string, err error) error {
	for _, own := range []error{ErrNoSpace, ErrLocked, ErrFormat, ErrNoDirectory, ErrNotStore, ErrMovedStore, ErrAckedDataLost} {
		if errors.Is(err, own) {
			return err
		}
	}
	if a := (*advice)(nil); errors.As(err, &a) {
		return err
	}
	switch {
	case pebblestore.IsFull(err):
		return &advice{err, fmt.Sprintf("free some space on the disk of %s and open it again", dir), ErrNoSpace}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return &advice{err, fmt.Sprintf("the process must be able to %s %s and all files in it: give them to its user, or name another directory", do, dir), nil}
	case errors.Is(err, fs.ErrNotExist):
		return &advice{err, fmt.Sprintf("a file of the store in %s is missing: bring it back from a copy of the store", dir), ErrCorrupt}
	}
	return err
}

// notOpened adds the directory to an error of a database that was opened. ErrAckedDataLost
// names it already.
func notOpened(dir pebblestore.Dir, err error) error {
	if errors.Is(err, ErrAckedDataLost) {
		return err
	}
	return fmt.Errorf("storage: open %s: %w", dir.Path, err)
}

// notMade adds the remedy to the error of making the directory of a store, if the name
// is the cause.
func notMade(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return &advice{err, fmt.Sprintf("the directory %s cannot be made there: name another", dir), nil}
	}
	return err
}

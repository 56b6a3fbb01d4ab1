package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// advice is an error of Open with what to do about it.
type advice struct {
	cause error
	text  string
	kind  error // what it is also, for errors.Is; nil: nothing else
}

func (a *advice) Error() string { return a.cause.Error() + ": " + a.text }

func (a *advice) Unwrap() []error {
	if a.kind == nil {
		return []error{a.cause}
	}
	return []error{a.cause, a.kind}
}

// advised adds to an error of the file system what to do about it. The store's own
// errors say so already.
func advised(dir string, err error) error {
	for _, own := range []error{ErrNoSpace, ErrLocked, ErrFormat, ErrNotStore, ErrAckedDataLost} {
		if errors.Is(err, own) {
			return err
		}
	}
	if a := (*advice)(nil); errors.As(err, &a) {
		return err
	}
	switch {
	case isFull(err):
		return &advice{err, fmt.Sprintf("free some space on the disk of %s and open it again", dir), ErrNoSpace}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return &advice{err, fmt.Sprintf("the process must be able to write to %s and to all files in it: give them to its user, or name another directory", dir), nil}
	case isNotExist(err):
		return &advice{err, fmt.Sprintf("a file of the store in %s is missing: bring it back from a copy of the store", dir), ErrCorrupt}
	}
	return err
}

// notMade adds to the error of making the directory of a store what to do about it, if
// the name is the cause.
func notMade(dir string, err error) error {
	if isNotExist(err) || errors.Is(err, syscall.ENOTDIR) {
		return &advice{err, fmt.Sprintf("the directory %s cannot be made there: name another", dir), nil}
	}
	return err
}

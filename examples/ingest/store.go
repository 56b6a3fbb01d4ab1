package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/storage"
)

// discard deletes the store in dir, if there is one. A directory that is no
// store, or is in use, is left alone.
func discard(dir string) error {
	old := dir + ".discarded"
	if err := os.RemoveAll(old); err != nil { // of a run that was killed here
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s, err := storage.Open(storage.Options{Dir: dir, MinFreeBytes: -1})
	switch {
	case err == nil:
		if err := s.Close(); err != nil {
			return err
		}
	case errors.Is(err, storage.ErrLocked), errors.Is(err, storage.ErrNotStore), errors.Is(err, fs.ErrPermission):
		return err
	}
	if err := os.Rename(dir, old); err != nil { // so that no half of a store is ever found
		return err
	}
	return os.RemoveAll(old)
}

// makeStore makes the directory of the store if it is missing.
func makeStore(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return &storeError{dir, err}
	}
	return nil
}

// cannotOpen is the error of opening the store in dir, told as a storeError if dir
// itself is the reason.
func cannotOpen(dir string, err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return &storeError{dir, err}
	}
	return err
}

// storeError is why a directory cannot hold the store.
type storeError struct {
	dir string
	err error
}

func (e *storeError) Unwrap() error { return e.err }

func (e *storeError) Error() string {
	reason := e.err
	if path := new(fs.PathError); errors.As(e.err, &path) {
		reason = path.Err
	}
	return fmt.Sprintf("the store cannot be in %s: %v", e.dir, reason)
}

// explain tells the remedy for an error, in one sentence.
func explain(err error, s settings) string {
	text := strings.TrimSpace(strings.ReplaceAll(err.Error(), "\n", "; "))
	text = strings.TrimPrefix(strings.TrimPrefix(text, "storage: "), "object: ")
	switch {
	case errors.As(err, new(*storeError)):
		return fmt.Sprintf("%s: name another directory with -data", text)
	case errors.Is(err, storage.ErrFormat), errors.Is(err, errOtherSource), errors.Is(err, storage.ErrCorrupt):
		return fmt.Sprintf("%s (store %s): name another directory with -data, or begin anew with -fresh", text, s.data)
	case errors.Is(err, storage.ErrNotStore), errors.Is(err, storage.ErrLocked):
		return fmt.Sprintf("%s (-data names the store)", text)
	case errors.Is(err, storage.ErrNoSpace):
		if _, after, ok := strings.Cut(text, storage.ErrNoSpace.Error()+": "); ok {
			text = strings.TrimSuffix(after, ": free some space and try again")
		}
		return fmt.Sprintf("the disk of %s is full: %s: free some and run %s; nothing is lost", s.data, text, s.again())
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Sprintf("%s: free some space and run %s, or name another directory with -data", text, s.again())
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("%s: name another directory, or change its mode", text)
	case errors.As(err, new(*fs.PathError)):
		return fmt.Sprintf("%s: name another directory with -src or -data", text)
	}
	return text
}

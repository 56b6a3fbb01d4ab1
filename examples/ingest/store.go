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

// explain is what to do about an error, as one line.
func explain(err error, s settings) string {
	text := strings.TrimSpace(strings.ReplaceAll(err.Error(), "\n", "; "))
	text = strings.TrimPrefix(strings.TrimPrefix(text, "storage: "), "object: ")
	switch {
	case errors.Is(err, storage.ErrFormat), errors.Is(err, errOtherSource), errors.Is(err, storage.ErrCorrupt):
		return fmt.Sprintf("%s (store %s): name another directory with -data, or begin anew with -fresh", text, s.data)
	case errors.Is(err, storage.ErrNotStore), errors.Is(err, storage.ErrLocked):
		return fmt.Sprintf("%s (-data names the store)", text)
	case errors.Is(err, storage.ErrNoSpace):
		return fmt.Sprintf("%s; nothing is lost, the same command goes on (store %s)", text, s.data)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Sprintf("%s: free some space and run the same command again, or name another directory with -data", text)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("%s: name another directory, or change its mode", text)
	case errors.As(err, new(*fs.PathError)):
		return fmt.Sprintf("%s: name another directory with -src or -data", text)
	}
	return text
}

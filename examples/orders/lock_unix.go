//go:build unix && !solaris && !aix

package main

import (
	"errors"
	"os"
	"syscall"
)

// lockFile opens a file and locks it until each copy of its descriptor is closed, also
// those of children.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

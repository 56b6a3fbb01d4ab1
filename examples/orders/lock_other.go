//go:build !unix || solaris || aix

package main

import "os"

// lockFile opens a file. On these systems only the store of the worker is locked.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
}

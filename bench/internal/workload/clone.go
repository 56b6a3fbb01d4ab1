package workload

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Clone copies the files of a closed store: tables by a link, because they never
// change, the others byte by byte.
func Clone(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || e.Name() == "LOCK" {
			continue
		}
		src, dst := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if filepath.Ext(e.Name()) == ".sst" {
			err = os.Link(src, dst)
		} else {
			err = copyFile(src, dst)
		}
		if err != nil {
			return fmt.Errorf("clone %s: %w", from, err)
		}
	}
	return nil
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close() // it was only read
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(dst, src); err != nil {
		return join(err, dst.Close)
	}
	if err := dst.Sync(); err != nil { // so that the first sync of the next process has nothing of ours to write
		return join(err, dst.Close)
	}
	return dst.Close()
}

// DiskBytes is the size of all files in dir.
func DiskBytes(dir string) (sizeBytes int64, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		info, statErr := e.Info()
		if statErr != nil {
			continue // removed meanwhile
		}
		sizeBytes += info.Size()
	}
	return sizeBytes, err
}

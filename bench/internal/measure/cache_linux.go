package measure

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Forgets reports whether Forget does anything on this system.
const Forgets = true

// Forget has the system forget what it keeps in memory of the files below a directory, so that the
// next read of each comes from the disk. It syncs them first, because bytes that are not on the disk stay.
func Forget(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if err = f.Sync(); err == nil {
			err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		}
		return errors.Join(err, f.Close())
	})
}

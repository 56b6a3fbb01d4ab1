//go:build unix

package pebblestore

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockHolder returns the pid of the process that holds the lock file, or 0. It
// must not be called for a file that this process has locked itself: closing any
// descriptor of it would give the lock up. A file that may only be read tells of a writer
// alone.
func lockHolder(path string) int {
	kind := int16(unix.F_WRLCK)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		kind = unix.F_RDLCK
		if f, err = os.Open(path); err != nil {
			return 0
		}
	}
	defer f.Close()
	lock := unix.Flock_t{Type: kind}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK {
		return 0
	}
	return int(lock.Pid)
}

// lockForReading locks a file that is open for reading, beside other readers. It returns
// errLockHeld if a writer has it.
func lockForReading(f *os.File) error {
	err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errLockHeld
	}
	return err
}

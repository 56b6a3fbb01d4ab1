//go:build unix

package storage

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockHolder returns the pid of the process that holds the lock file, or 0. It
// must not be called for a file that this process has locked itself: closing any
// descriptor of it would give the lock up.
func lockHolder(path string) int {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK {
		return 0
	}
	return int(lock.Pid)
}

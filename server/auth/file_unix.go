//go:build unix && !solaris && !aix

package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// checkOwner refuses a file that others can read or write, or that belongs to another user.
func checkOwner(info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("others can read or write it, its mode is %#o: make it 0600", mode)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && foreign(int(st.Uid), os.Geteuid()) {
		return fmt.Errorf("it belongs to user %d, and this process is user %d: give it to that one", st.Uid, os.Geteuid())
	}
	return nil
}

// foreign reports whether a file of the user owner may not be trusted by a process of the user me. Root
// can write all files and reads those of a server for it.
func foreign(owner, me int) bool { return me != 0 && owner != 0 && owner != me }

// keepOwner gives a new file the owner of the one that it replaces.
func keepOwner(f *os.File, old fs.FileInfo) error {
	st, ok := old.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) == os.Geteuid() {
		return nil
	}
	return f.Chown(int(st.Uid), int(st.Gid))
}

// tryLock locks the directory of a file, so that no lock file is left behind and the file itself
// can be replaced. It returns errLocked if another has the lock. The process that ends in any way
// gives it up.
func tryLock(path string) (unlock func() error, err error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, errors.Join(err, dir.Close())
	}
	return dir.Close, nil
}

// syncDir makes the names of a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// dialTime bounds a look whether a process answers on a socket.
const dialTime = 5 * time.Second

// Listener is the listener of a socket. Its connections are *net.UnixConn.
type Listener struct {
	*net.UnixListener
	dir *os.File // of the socket, locked
}

// Listen listens on the socket with a path, at its Place. It makes the last directory of the path if that is not
// there. It refuses a directory that other users can enter, and a file that is no socket, and returns
// an error that matches ErrInUse if another listener has the socket.
func Listen(path string) (*Listener, error) {
	at, err := Place(path)
	if err != nil {
		return nil, err
	}
	dir, err := enter(at)
	if err != nil {
		return nil, err
	}
	l, err := listen(at)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &Listener{l, dir}, nil
}

// Close closes the listener and removes the socket. A second call does nothing.
func (l *Listener) Close() error {
	err := l.UnixListener.Close() // it removes the socket too
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return errors.Join(err, l.dir.Close()) // the lock last, so that no other listener loses its socket
}

// enter locks the directory of a socket. Closing the file gives the lock up.
func enter(at string) (*os.File, error) {
	path := filepath.Dir(at)
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := private(dir); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	switch err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(inUse(at), dir.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %q: %w", path, err), dir.Close())
	}
	return dir, nil
}

// private refuses a directory that other users can enter, because they could put a socket of their own
// in the place of ours.
func private(dir *os.File) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("the directory %q of the socket has the mode %#o, so other users can enter it: make it 0700, or name a directory for the socket alone", dir.Name(), mode)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("the directory %q of the socket belongs to user %d, and this process is user %d", dir.Name(), st.Uid, os.Geteuid())
	}
	return nil
}

// listen removes the socket that a process has left behind, and listens. The caller has the lock of its directory.
func listen(at string) (*net.UnixListener, error) {
	info, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%q is no socket: remove it, or name another path", at)
	case Answers(at):
		return nil, inUse(at) // by a program that takes no lock
	default:
		if err := os.Remove(at); err != nil {
			return nil, err
		}
	}
	return net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
}

// inUse is ErrInUse with the process that listens.
func inUse(at string) error {
	holder := "another process"
	if c, err := net.DialTimeout("unix", at, dialTime); err == nil {
		if peer, err := credentials(c); err == nil {
			holder = fmt.Sprintf("the process with pid %d", peer.Pid)
		}
		_ = c.Close() // nothing was sent
	}
	return fmt.Errorf("%w: %q has %s", ErrInUse, at, holder)
}

// Answers reports whether a process listens on the socket at a place.
func Answers(at string) bool {
	c, err := net.DialTimeout("unix", at, dialTime)
	if err != nil {
		return false
	}
	_ = c.Close() // nothing was sent
	return true
}

// Peer returns the user of the process at the other end of a connection, as it was when that connected.
func Peer(c net.Conn) (uid int, err error) {
	peer, err := credentials(c)
	if err != nil {
		return -1, err
	}
	return int(peer.Uid), nil
}

// credentials are those of the process at the other end of a connection.
func credentials(c net.Conn) (*syscall.Ucred, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("a connection of %T tells no user", c)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil, err
	}
	var peer *syscall.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	return peer, failed
}

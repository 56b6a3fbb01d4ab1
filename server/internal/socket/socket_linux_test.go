package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func check(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Proves V16: the socket lies in a directory of the mode 0700 and is removed at the end. One that a
// process has left behind is replaced, and one that is listened to is refused with the pid.
func TestListen(t *testing.T) {
	at := Of(t.TempDir())
	l, err := Listen(at)
	check(t, err)
	info, err := os.Stat(filepath.Dir(at))
	check(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has the mode %#o", info.Mode().Perm())
	}
	if !Answers(at) {
		t.Error("it does not answer")
	}
	_, err = Listen(at)
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("a second listener: %v", err)
	}
	check(t, l.Close(), l.Close())
	if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) || Answers(at) {
		t.Errorf("after the end: %v", err)
	}

	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	check(t, err)
	stale.SetUnlinkOnClose(false)
	if _, err := Listen(at); !errors.Is(err, ErrInUse) { // by a program that takes no lock
		t.Errorf("beside another program: %v", err)
	}
	check(t, stale.Close())
	_, err = os.Lstat(at)
	check(t, err)
	l, err = Listen(at)
	check(t, err)
	check(t, l.Close())
}

// Proves V16: a directory that others can enter, a file that is no socket and a directory that is not
// there are refused, and stay as they are.
func TestRefusedPlaces(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	check(t, os.Mkdir(open, 0o700), os.Chmod(open, 0o710))
	file := filepath.Join(t.TempDir(), "run", "holdfast.sock")
	check(t, os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("x"), 0o600))
	for path, want := range map[string]string{
		filepath.Join(open, "x.sock"): "mode 0710",
		file:                          "is no socket",
		filepath.Join(t.TempDir(), "none", "run", "x.sock"):  "no such file",
		filepath.Join(t.TempDir(), strings.Repeat("x", 100)): "XDG_RUNTIME_DIR",
	} {
		t.Setenv("XDG_RUNTIME_DIR", "")
		if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if text, err := os.ReadFile(file); string(text) != "x" || err != nil {
		t.Errorf("the file is %q, %v", text, err)
	}
	check(t, os.Chmod(open, 0o700))
	l, err := Listen(filepath.Join(open, "x.sock"))
	check(t, err)
	check(t, l.Close())
}

// Proves V16: a path of 100 bytes is kept, and a longer one has a place of its own in
// XDG_RUNTIME_DIR, also by another way to the same directory.
func TestPlace(t *testing.T) {
	runtime, root := t.TempDir(), t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	exact := filepath.Join(root, strings.Repeat("x", maxBytes-len(root)-1))
	if at, err := Place(exact); at != exact || err != nil {
		t.Errorf("of %d bytes: %q, %v", len(exact), at, err)
	}
	if at, err := Place(exact + "x"); err != nil || filepath.Dir(filepath.Dir(at)) != runtime {
		t.Errorf("of one more: %q, %v", at, err)
	}
	deep := filepath.Join(root, strings.Repeat("d", 100))
	link := filepath.Join(root, "link")
	check(t, os.Mkdir(deep, 0o700), os.Symlink(deep, link))
	l, err := Listen(Of(deep))
	check(t, err)
	at, err := Place(Of(link))
	if err != nil || !Answers(at) || l.Addr().String() != at {
		t.Errorf("by the link %q, %v; listened to at %s", at, err, l.Addr())
	}
	if other, err := Place(Of(deep + "/e")); err != nil || other == at {
		t.Errorf("another store has the same place: %q, %v", other, err)
	}
	check(t, l.Close())
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(runtime, strings.Repeat("r", 100)))
	if _, err := Place(Of(deep)); err == nil || !strings.Contains(err.Error(), "shorter path") {
		t.Errorf("a runtime directory that is too long: %v", err)
	}
}

// Proves V16: a connection tells the user at its other end.
func TestPeer(t *testing.T) {
	l, err := Listen(Of(t.TempDir()))
	check(t, err)
	c, err := net.Dial("unix", l.Addr().String())
	check(t, err)
	a, err := l.Accept()
	check(t, err)
	if uid, err := Peer(a); uid != os.Geteuid() || err != nil {
		t.Errorf("user %d, %v", uid, err)
	}
	check(t, c.Close(), a.Close(), l.Close())
	x, y := net.Pipe()
	if _, err := Peer(x); err == nil {
		t.Error("a pipe has a user")
	}
	check(t, x.Close(), y.Close())
}

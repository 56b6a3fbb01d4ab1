package storage

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// child is a process that runs a task of runChild on a directory.
type child struct {
	*exec.Cmd
	in   io.Closer
	out  *bufio.Reader
	said string // its first line
}

func startChild(t *testing.T, task, dir string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(os.Args[0])}
	c.Env = append(os.Environ(), "HOLDFAST_TEST_CHILD="+task, "HOLDFAST_TEST_DIR="+dir)
	c.Stderr = os.Stderr
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	c.in, c.out = in, bufio.NewReader(out)
	line, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the child says %q, %v", line, err)
	}
	c.said = line
	return c
}

func (c *child) end(t *testing.T) {
	t.Helper()
	if err := errors.Join(c.in.Close(), c.Wait()); err != nil {
		t.Fatal(err)
	}
}

// triedBy is the kind of error that an Open of another process gets.
func triedBy(t *testing.T, dir string) string {
	t.Helper()
	c := startChild(t, "try", dir)
	c.end(t)
	return c.said
}

// A program that has the store open keeps readers out, and readers keep a program out, between
// processes and within one. The error has the pid. A refused reader does not break the lock.
//
// Case ST19. Proves S13, O2.
func TestReadersAndWritersExcludeOneAnother(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	self := fmt.Sprintf("this process (pid %d)", os.Getpid())
	s := open(t, Options{Dir: dir})
	wantReaderError(t, Options{Dir: dir}, ErrLocked, dir, self)
	if got := triedBy(t, dir); got != "locked\n" {
		t.Errorf("after a refused reader of this process, another one is %s", got)
	}
	checkAndClose(t, s)

	one, two := openReader(t, Options{Dir: dir}), openReader(t, Options{Dir: dir})
	wantOpenError(t, Options{Dir: dir}, ErrLocked, dir, self)
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	if got := triedBy(t, dir); got != "locked\n" {
		t.Errorf("beside the second reader of this process, another one is %s", got)
	}
	wantOpenError(t, Options{Dir: dir}, ErrLocked, dir, self)
	if err := two.Close(); err != nil {
		t.Error(err)
	}
	if got := triedBy(t, dir); got != "open\n" {
		t.Errorf("after both readers, another process is %s", got)
	}

	other := startChild(t, "hold", dir)
	pid := fmt.Sprintf("the process with pid %d", other.Process.Pid)
	wantReaderError(t, Options{Dir: dir}, ErrLocked, dir, pid)
	wantReaderError(t, Options{Dir: dir}, ErrLocked, dir, pid) // the first has not broken the lock
	other.end(t)

	other = startChild(t, "look", dir)
	third := openReader(t, Options{Dir: dir}) // beside the reader of another process
	if err := third.Close(); err != nil {
		t.Error(err)
	}
	wantOpenError(t, Options{Dir: dir}, ErrLocked, dir, fmt.Sprintf("the process with pid %d", other.Process.Pid))
	other.end(t)
	checkAndClose(t, open(t, Options{Dir: dir}))
}

// A look at the store of a process that was killed changes no file on the disk of this
// machine, and the next opening is told of the kill.
//
// Case ST19. Proves S13.
func TestReadOnlyOpenAfterAKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	c := startChild(t, "hold", dir)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil {
		t.Fatal("the child ended in order")
	}
	before := diskFiles(t, dir)
	s := openReader(t, Options{Dir: dir})
	if err := errors.Join(s.Check(), s.Close()); err != nil {
		t.Error(err)
	}
	if v, p := s.Epoch(), s.Previous(); v != 2 || p.Clean || p.Crashes != 1 || p.Epoch != 1 {
		t.Errorf("the look tells of epoch %d after %+v", v, p)
	}
	after := diskFiles(t, dir)
	for name, was := range before {
		if after[name] != was {
			t.Errorf("%s was %.60q and is %.60q", name, was, after[name])
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files have become %d", len(before), len(after))
	}
	s = open(t, Options{Dir: dir})
	if v, p := s.Epoch(), s.Previous(); v != 2 || p.Clean || p.Crashes != 1 || p.Epoch != 1 {
		t.Errorf("the opening has epoch %d after %+v", v, p)
	}
	checkAndClose(t, s)
}

// diskFiles are mode, time of the last change and content of each file below dir, and of dir.
func diskFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		text := []byte(nil)
		if !info.IsDir() {
			text, err = os.ReadFile(path)
		}
		files[path] = fmt.Sprintf("%v %v %s", info.Mode(), info.ModTime(), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

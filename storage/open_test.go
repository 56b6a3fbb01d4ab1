package storage

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// wantOpenError opens with o and checks that the error wraps sentinel, is one
// clear line, and says each of the words.
func wantOpenError(t *testing.T, o Options, sentinel error, says ...string) {
	t.Helper()
	s, err := Open(o)
	if err == nil {
		s.Close()
		t.Fatal("Open succeeded")
	}
	wantOneLine(t, err, sentinel, says...)
}

// wantOneLine checks that the error wraps sentinel, is one clear line, and says each of the
// words.
func wantOneLine(t *testing.T, err, sentinel error, says ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("there is no error")
	}
	if sentinel != nil && !errors.Is(err, sentinel) {
		t.Errorf("%v is not %v", err, sentinel)
	}
	text := err.Error()
	if strings.Contains(text, "\n") || strings.Count(text, "storage:") != 1 {
		t.Errorf("the error is not one line that names the package once: %q", text)
	}
	for _, word := range says {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
}

func TestOpenNeedsADirectory(t *testing.T) {
	wantOpenError(t, Options{}, nil, "Options.Dir is empty")
	wantOpenError(t, Options{Dir: "d", Shards: -1}, nil, "Options.Shards is -1")
	wantOpenError(t, Options{Dir: "d", Shards: MaxShards + 1}, nil, "between 1 and 4096")
}

func TestOpenRefusesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantOpenError(t, Options{Dir: path}, ErrNotStore, path, "is a file")
}

// Open leaves a directory with files of others as it was.
func TestOpenRefusesForeignFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "letter.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantOpenError(t, Options{Dir: dir}, ErrNotStore, dir, "letter.txt")
	if _, err := os.Stat(filepath.Join(dir, formatFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open wrote into it: %v", err)
	}
}

func TestOpenRefusesAnotherFormat(t *testing.T) {
	fsys := vfs.NewMem()
	o := memOptions(fsys)
	checkAndClose(t, open(t, o))

	o.Shards = 8
	wantOpenError(t, o, ErrFormat, "made with 4 shards, not 8")

	o.Shards = 0
	s := open(t, o)
	if s.Shards() != 4 {
		t.Errorf("%d shards", s.Shards())
	}
	checkAndClose(t, s)

	rewrite(t, fsys, "HOLDFAST", fmt.Sprintf("holdfast store\nformat %d\nnodes 3\n", FormatVersion+1))
	wantOpenError(t, o, ErrFormat, fmt.Sprintf("store/HOLDFAST has format version %d, this program reads versions %d to %d", FormatVersion+1, oldestFormat, FormatVersion))
	rewrite(t, fsys, "HOLDFAST", formatText(oldestFormat-1, 4))
	wantOpenError(t, o, ErrFormat, fmt.Sprintf("format version %d", oldestFormat-1))
	rewrite(t, fsys, "HOLDFAST", "#!/bin/sh\n")
	wantOpenError(t, o, ErrFormat, "store/HOLDFAST", "not a format file")
	rewrite(t, fsys, "HOLDFAST", strings.Replace(formatText(FormatVersion, 4), "shards 4", "shards 5", 1))
	wantOpenError(t, o, ErrFormat, "store/HOLDFAST", "checksum")
}

// Proves S11: a store of the version before opens as it is, and has the version of today from
// then on. A crash at the change leaves one of the two.
func TestOpenRaisesTheFormat(t *testing.T) {
	fsys := vfs.NewMem()
	o := memOptions(fsys)
	s := open(t, o)
	was := newObject(t, s, "c", "n")
	checkAndClose(t, s)
	rewrite(t, fsys, "HOLDFAST", formatText(oldestFormat, 4))
	rewrite(t, fsys, "HOLDFAST.new", formatText(FormatVersion, 4)) // of a change that was cut off
	s = open(t, o)
	if o, err := s.Find(was.ID); err != nil || o.Number != was.Number || o.Label != (Label{}) {
		t.Errorf("found %+v, %v, want %+v", o, err, was)
	}
	checkAndClose(t, s)
	if text, err := dirOf(fsys).Read("HOLDFAST"); err != nil || text != formatText(FormatVersion, 4) {
		t.Errorf("the format file is %q, %v", text, err)
	}
	if _, err := dirOf(fsys).Read("HOLDFAST.new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the second name is left: %v", err)
	}
	checkAndClose(t, open(t, o))
}

// rewrite replaces a file of the store.
func rewrite(t *testing.T, fsys vfs.FS, name, text string) {
	t.Helper()
	if err := dirOf(fsys).Write(name, text); err != nil {
		t.Fatal(err)
	}
}

// A store without its database is not taken for a new one.
func TestOpenMissesALostDatabase(t *testing.T) {
	fsys := vfs.NewMem()
	o := memOptions(fsys)
	checkAndClose(t, open(t, o))
	names, err := fsys.List("store")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name != formatFile {
			if err := fsys.Remove(fsys.PathJoin("store", name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantOpenError(t, o, ErrCorrupt, "the database in store is missing")
}

// A store that lacks one file is not opened, and the error names the file. Regression:
// without the format file the error asked for an empty directory, and without Pebble's
// markers it named nothing that a reader knows.
func TestOpenNamesTheMissingFile(t *testing.T) {
	for _, kind := range []string{formatFile, pebblestore.SumsFile, "marker.manifest", "marker.format-version", "MANIFEST"} {
		fsys := vfs.NewMem()
		o := memOptions(fsys)
		checkAndClose(t, open(t, o))
		names, err := fsys.List("store")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if name == kind || kind != formatFile && strings.HasPrefix(name, kind) {
				if err := fsys.Remove(fsys.PathJoin("store", name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		wantOpenError(t, o, ErrCorrupt, kind, "store", "missing")
	}
}

// Proves O2 within a process, also when the directory is named another way.
func TestOpenIsLockedByThisProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, Options{Dir: dir})
	pid := fmt.Sprintf("this process (pid %d)", os.Getpid())
	wantOpenError(t, Options{Dir: dir}, ErrLocked, dir, pid)

	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	wantOpenError(t, Options{Dir: link}, ErrLocked, pid)
	t.Chdir(filepath.Dir(dir))
	wantOpenError(t, Options{Dir: "store"}, ErrLocked, pid)

	checkAndClose(t, s)
	checkAndClose(t, open(t, Options{Dir: "store"}))
}

// Proves O2 between processes.
func TestOpenIsLockedByAnotherProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "HOLDFAST_TEST_CHILD=hold", "HOLDFAST_TEST_DIR="+dir)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	wantOpenError(t, Options{Dir: dir}, ErrLocked, dir, fmt.Sprintf("the process with pid %d", child.Process.Pid))
	wantOpenError(t, Options{Dir: dir}, ErrLocked) // the first attempt has not broken the lock

	if err := errors.Join(in.Close(), child.Wait()); err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{Dir: dir})
	if p := s.Previous(); !p.Clean || p.Epoch != 1 {
		t.Errorf("after the child: %+v", p)
	}
	checkAndClose(t, s)
}

// Permissions bind all users but root. As root, Open must succeed.
func TestOpenReportsPermissions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	checkAndClose(t, open(t, Options{Dir: dir}))
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	if err := os.Chmod(filepath.Join(dir, "LOCK"), 0o400); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		checkAndClose(t, open(t, Options{Dir: dir}))
		return
	}
	wantOpenError(t, Options{Dir: dir}, os.ErrPermission, dir)
	wantOpenError(t, Options{Dir: filepath.Join(dir, "inner")}, os.ErrPermission, dir)
}

// A directory made with its parents survives the loss of power, and acknowledged rows in
// it. Proves S9's first sentence for the first commit of all.
func TestNewDirectorySurvivesPowerLoss(t *testing.T) {
	fsys := vfs.NewCrashableMem()
	o := memOptions(fsys)
	o.Dir = "a/b/c"
	s := open(t, o)
	commit(t, s, func(b *Batch) { b.SetMeta("user", []byte("kept")) })
	after := fsys.CrashClone(vfs.CrashCloneCfg{})
	checkAndClose(t, s)

	o.Pebble.FS = after
	s = open(t, o)
	if v, ok, err := s.Meta("user"); string(v) != "kept" || !ok || err != nil {
		t.Errorf("after the crash: %q, %v, %v", v, ok, err)
	}
	checkAndClose(t, s)
}

// A store that could not be opened is unlocked again and unchanged.
func TestFailedOpenReleasesTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	o := Options{Dir: dir, Shards: 4}
	checkAndClose(t, open(t, o))
	o.Shards = 5
	wantOpenError(t, o, ErrFormat)
	o.Shards, o.MinFreeBytes = 4, 1<<62
	wantOpenError(t, o, ErrNoSpace, dir, "are free")
	o.MinFreeBytes = 0
	s := open(t, o)
	if s.Epoch() != 2 {
		t.Errorf("the failed openings used up epochs: this one is %d", s.Epoch())
	}
	checkAndClose(t, s)
}

package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

func openReader(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := OpenReadOnly(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// allRows are all rows of a store but those that an opening writes.
func allRows(t *testing.T, s *Store) map[string]string {
	t.Helper()
	it, err := s.engine.NewIter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]string)
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			t.Fatal(err)
		}
		rows[string(it.Key())] = string(v)
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		t.Fatal(err)
	}
	delete(rows, string(metaKey("epoch")))
	delete(rows, string(metaKey(witnessRow)))
	return rows
}

// fillStore makes commits of every size, some of which are in tables and the last of which are
// in the log.
func fillStore(t *testing.T, s *Store) {
	t.Helper()
	o := newObject(t, s, "cart", "bob")
	for i := range 20 {
		commit(t, s, func(b *Batch) {
			b.SetData(o, fmt.Sprint("k", i), bytes.Repeat([]byte{byte(i)}, 20_000))
			b.SetMeta("last", []byte(fmt.Sprint(i)))
			if i%5 == 4 {
				b.DeleteData(o, fmt.Sprint("k", i-1))
			}
		})
	}
}

// leftStores are the files of a store that was closed in order, and of killed processes: with
// all bytes, and with a torn end.
func leftStores(t *testing.T, o Options) map[string]crashfs.Tree {
	t.Helper()
	mem := vfs.NewCrashableMem()
	fsys := crashfs.New(mem, nil)
	o.Pebble.FS = fsys
	if err := open(t, o).Abandon(); err != nil { // an opening that did not end in order
		t.Fatal(err)
	}
	s := open(t, o)
	fillStore(t, s)
	var b Batch
	b.SetMeta("unsynced", bytes.Repeat([]byte("u"), 50_000))
	if _, err := s.Commit(&b); err != nil {
		t.Fatal(err)
	}
	left := make(map[string]crashfs.Tree)
	for name, keep := range map[string]crashfs.Keep{"killed": crashfs.KeepAll, "torn": 1} {
		after, err := fsys.Crash(keep)
		if err != nil {
			t.Fatal(err)
		}
		left[name] = crashfs.Read(after)
	}
	checkAndClose(t, s)
	left["closed"] = crashfs.Read(mem)
	return left
}

func written(t *testing.T, files crashfs.Tree) *vfs.MemFS {
	t.Helper()
	fsys, err := files.Write()
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

// wantFiles checks that the files are the same as before a look.
func wantFiles(t *testing.T, got, want crashfs.Tree) {
	t.Helper()
	for name, data := range want {
		if now, ok := got[name]; !ok || !bytes.Equal(now, data) {
			t.Errorf("%s had %d bytes and has others now: there is %v, with %d", name, len(data), ok, len(now))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is new", name)
		}
	}
}

// A look at a store that was closed, or left by a killed process, changes no byte. It finds
// all rows that the next Open finds, and that has the epoch and the previous ending that it
// has without a look.
//
// Case ST19. Proves S13.
func TestReadOnlyOpenChangesNothing(t *testing.T) {
	for _, witness := range []bool{false, true} {
		o := memOptions(nil)
		o.Witness = witness
		for name, files := range leftStores(t, o) {
			t.Run(fmt.Sprint(name, " witness ", witness), func(t *testing.T) {
				fsys := written(t, files)
				o.Pebble.FS = fsys
				var seen *Store
				var rows map[string]string
				for range 2 {
					seen = openReader(t, o)
					rows = allRows(t, seen)
					if err := errors.Join(seen.Check(), seen.Close()); err != nil {
						t.Fatal(err)
					}
				}
				wantFiles(t, crashfs.Read(fsys), files)

				o.Pebble.FS = written(t, files)
				unseen := open(t, o)
				defer checkAndClose(t, unseen)
				o.Pebble.FS = fsys
				s := open(t, o)
				defer checkAndClose(t, s)
				if s.Epoch() != unseen.Epoch() || s.Previous() != unseen.Previous() {
					t.Errorf("after a look the epoch is %d after %+v, without one %d after %+v", s.Epoch(), s.Previous(), unseen.Epoch(), unseen.Previous())
				}
				if seen.Epoch() != s.Epoch() || seen.Previous() != s.Previous() {
					t.Errorf("the look tells of epoch %d after %+v, the opening of %d after %+v", seen.Epoch(), seen.Previous(), s.Epoch(), s.Previous())
				}
				if s.Previous().Crashes == 0 == (name != "closed") {
					t.Errorf("it was %s, and the opening tells of %+v", name, s.Previous())
				}
				if want := allRows(t, s); len(rows) < 15 || !maps.Equal(rows, want) {
					t.Errorf("the look finds %d rows, the opening %d or others", len(rows), len(want))
				}
			})
		}
	}
}

// A store that is open for reading refuses each change with ErrReadOnly, and lives on.
//
// Proves S13.
func TestReadOnlyRefusesChanges(t *testing.T) {
	fsys := vfs.NewMem()
	o := memOptions(fsys)
	s := open(t, o)
	obj := newObject(t, s, "cart", "bob")
	commit(t, s, func(b *Batch) {
		b.SetMark(obj, 5, "key", 5, []byte("yes"))
		b.IndexMarks(obj, 5)
	})
	checkAndClose(t, s)
	for name, o := range map[string]Options{"directory": o, "engine": {Engine: memstore.New(), Shards: 4}} {
		t.Run(name, func(t *testing.T) {
			s := openReader(t, o)
			var set, message Batch
			set.SetMeta("k", []byte("v"))
			message.AddMessage(s.ShardOf(obj.ID), obj.ID, 0, []byte("m"))
			for _, b := range []*Batch{&set, &message, &set} {
				if _, err := s.Commit(b); err != ErrReadOnly {
					t.Errorf("Commit: %v", err)
				}
			}
			if below := s.MessagesBelow(); below <= s.FirstSeq()+1 {
				t.Errorf("the refused message stands open: messages are read below %#x", below)
			}
			if ticket, err := s.Commit(new(Batch)); err != nil || s.WaitDurable(ticket) != nil {
				t.Errorf("an empty commit: %v", err)
			}
			if name == "directory" {
				if _, _, _, err := s.Expire(obj.Shard, 10, 100, nil); err != ErrReadOnly {
					t.Errorf("Expire: %v", err)
				}
			}
			if err := s.WaitSeen(t.Context()); err != nil {
				t.Errorf("WaitSeen: %v", err)
			}
			if _, ok, err := s.Meta("k"); ok || err != nil || s.Err() != nil || s.Pending() != 0 {
				t.Errorf("after it: %v, %v, %v, %d pending", ok, err, s.Err(), s.Pending())
			}
			if err := errors.Join(s.Close(), s.Close()); err != nil {
				t.Error(err)
			}
			if _, _, err := s.Meta("k"); !errors.Is(err, ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

// The reader of an engine finds what is in it, and closes it also when the options are bad.
func TestReadOnlyOpenOfAnEngine(t *testing.T) {
	kept := memstore.New()
	s := open(t, Options{Engine: kept, Shards: 4})
	commit(t, s, func(b *Batch) { b.SetMeta("user", []byte("kept")) })
	left := kept.Crash(0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openReader(t, Options{Engine: left, Shards: 4})
	if v, _, err := s.Meta("user"); string(v) != "kept" || err != nil || s.Epoch() != 2 || s.Previous().Clean {
		t.Errorf("it holds %q, %v, with epoch %d after %+v", v, err, s.Epoch(), s.Previous())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A store of the version before is read, and keeps its version.
//
// Proves S13.
func TestReadOnlyOpenOfAnOlderFormat(t *testing.T) {
	fsys := vfs.NewMem()
	o := memOptions(fsys)
	checkAndClose(t, open(t, o))
	rewrite(t, fsys, formatFile, formatText(oldestFormat, 4))
	before := crashfs.Read(fsys)
	s := openReader(t, o)
	if err := errors.Join(s.Check(), s.Close()); err != nil || s.Shards() != 4 {
		t.Errorf("%d shards, %v", s.Shards(), err)
	}
	wantFiles(t, crashfs.Read(fsys), before)
}

// wantReaderError opens for reading and checks that the error is one line, wraps the sentinel
// and says each of the words.
func wantReaderError(t *testing.T, o Options, sentinel error, says ...string) {
	t.Helper()
	s, err := OpenReadOnly(o)
	if err == nil {
		s.Close()
		t.Fatal("OpenReadOnly succeeded")
	}
	wantOneLine(t, err, sentinel, says...)
	for _, other := range []error{ErrNoDirectory, ErrNotStore, ErrFormat, ErrLocked, ErrCorrupt, fs.ErrPermission, ErrAckedDataLost} {
		if other != sentinel && errors.Is(err, other) && !errors.Is(sentinel, other) {
			t.Errorf("%v is %v too", err, other)
		}
	}
}

// Each cause that keeps a directory from being read has its own error, which is one line and
// says how to go on. None of them changes a file.
//
// Case ST19. Proves S13.
func TestReadOnlyOpenSaysWhy(t *testing.T) {
	made := func(change func(fsys *vfs.MemFS)) Options {
		fsys := vfs.NewMem()
		o := memOptions(fsys)
		s := open(t, o)
		commit(t, s, func(b *Batch) { b.SetMeta("user", []byte("kept")) })
		checkAndClose(t, s)
		change(fsys)
		return o
	}
	empty := func(files map[string]string) Options {
		fsys := vfs.NewMem()
		if err := fsys.MkdirAll("store", 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			rewrite(t, fsys, name, text)
		}
		return memOptions(fsys)
	}
	remove := func(kind string) func(*vfs.MemFS) {
		return func(fsys *vfs.MemFS) { removeKind(t, fsys, kind) }
	}
	failing := func(err error) Options {
		o := made(func(*vfs.MemFS) {})
		o.Pebble.FS = errorfs.Wrap(o.Pebble.FS, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpOpen && strings.HasSuffix(op.Path, ".sst") {
				return &fs.PathError{Op: "open", Path: op.Path, Err: err}
			}
			return nil
		}))
		return o
	}
	otherShards := made(func(*vfs.MemFS) {})
	otherShards.Shards = 5
	for name, c := range map[string]struct {
		o        Options
		sentinel error
		says     []string
	}{
		"no directory":     {memOptions(vfs.NewMem()), ErrNoDirectory, []string{"no such directory: store", "name the directory of a store"}},
		"no name":          {Options{}, nil, []string{"Options.Dir is empty"}},
		"a file":           {Options{Dir: "store/HOLDFAST", Pebble: made(func(*vfs.MemFS) {}).Pebble}, ErrNotStore, []string{"store/HOLDFAST is a file"}},
		"empty":            {empty(nil), ErrNotStore, []string{"store holds no store"}},
		"files of others":  {empty(map[string]string{"letter.txt": "mine"}), ErrNotStore, []string{"letter.txt", "no HOLDFAST"}},
		"not made":         {empty(map[string]string{formatFileNew: formatText(FormatVersion, 4)}), ErrNotStore, []string{"not made to its end", "open it with its program first"}},
		"format torn":      {empty(map[string]string{formatFileNew: "holdf"}), ErrNotStore, []string{"store holds no store"}},
		"newer":            {made(func(fsys *vfs.MemFS) { rewrite(t, fsys, formatFile, "holdfast store\nformat 99\nnodes 3\n") }), ErrFormat, []string{"store/HOLDFAST has format version 99"}},
		"shards":           {otherShards, ErrFormat, []string{"4 shards, not 5"}},
		"no format":        {made(remove(formatFile)), ErrCorrupt, []string{"HOLDFAST is missing"}},
		"no sums":          {made(remove(pebblestore.SumsFile)), ErrCorrupt, []string{"HOLDFAST.sums is missing"}},
		"no manifest":      {made(remove("MANIFEST")), ErrCorrupt, []string{"MANIFEST", "missing"}},
		"no database":      {made(remove("marker.manifest")), ErrCorrupt, []string{"marker.manifest", "missing"}},
		"no table":         {made(remove("*.sst")), ErrCorrupt, []string{"missing", "bring it back from a copy"}},
		"damaged manifest": {made(func(fsys *vfs.MemFS) { flipKind(t, fsys, "MANIFEST") }), ErrCorrupt, []string{"MANIFEST", "differs from the bytes"}},
		"no permission":    {failing(syscall.EACCES), fs.ErrPermission, []string{"must be able to read store"}},
	} {
		t.Run(name, func(t *testing.T) {
			var before crashfs.Tree
			fsys, inMemory := c.o.Pebble.FS.(*vfs.MemFS)
			if inMemory {
				before = crashfs.Read(fsys)
			}
			wantReaderError(t, c.o, c.sentinel, c.says...)
			if inMemory {
				wantFiles(t, crashfs.Read(fsys), before)
			}
		})
	}
}

// The end of the log that a reader needs is compared with the witness too.
//
// Proves S13.
func TestReadOnlyOpenComparesTheWitness(t *testing.T) {
	fsys := vfs.NewMem()
	o := memOptions(fsys)
	o.Witness = true
	s := open(t, o)
	commit(t, s, func(b *Batch) { b.SetMeta("user", []byte("kept")) })
	checkAndClose(t, s)
	s = openReader(t, o)
	stored, err := s.witnessed()
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		seen uint64
		lost bool
	}{{stored, false}, {stored + 1, true}} {
		rewrite(t, fsys, witnessFile, string(witnessSlotOf(c.seen)))
		if c.lost {
			wantReaderError(t, o, ErrAckedDataLost, fmt.Sprint("sync ", c.seen))
			continue
		}
		if err := openReader(t, o).Close(); err != nil {
			t.Error(err)
		}
	}
	if err := fsys.Remove("store/" + witnessFile); err != nil {
		t.Fatal(err)
	}
	before := crashfs.Read(fsys)
	if err := openReader(t, o).Close(); err != nil {
		t.Error(err)
	}
	wantFiles(t, crashfs.Read(fsys), before)
}

// kindFiles are the files of the store of a kind: those with a name that begins so, or that
// ends so after a *.
func kindFiles(t *testing.T, fsys vfs.FS, kind string) (names []string) {
	t.Helper()
	all, err := fsys.List("store")
	if err != nil {
		t.Fatal(err)
	}
	suffix, ends := strings.CutPrefix(kind, "*")
	for _, name := range all {
		if ends && strings.HasSuffix(name, suffix) || name == kind || kind != formatFile && !ends && strings.HasPrefix(name, kind) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Fatalf("%v has no %s", all, kind)
	}
	return names
}

func removeKind(t *testing.T, fsys vfs.FS, kind string) {
	t.Helper()
	for _, name := range kindFiles(t, fsys, kind) {
		if err := fsys.Remove(fsys.PathJoin("store", name)); err != nil {
			t.Fatal(err)
		}
	}
}

func flipKind(t *testing.T, fsys vfs.FS, kind string) {
	t.Helper()
	for _, name := range kindFiles(t, fsys, kind) {
		text, err := dirOf(fsys).Read(name)
		if err != nil {
			t.Fatal(err)
		}
		data := []byte(text)
		data[len(data)/2] ^= 1
		rewrite(t, fsys, name, string(data))
	}
}

// Permissions bind all users but root. A store that may only be read can be looked at, on the
// disk of this machine, without a lock file too; none is made.
func TestReadOnlyOpenOfAnUnwritableDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	checkAndClose(t, open(t, Options{Dir: dir}))
	if err := os.Chmod(filepath.Join(dir, "LOCK"), 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	if err := openReader(t, Options{Dir: dir}).Close(); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(dir, "LOCK")
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if err := openReader(t, Options{Dir: dir, WaitForLock: time.Second}).Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(lock); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a lock file was made: %v", err)
	}
}

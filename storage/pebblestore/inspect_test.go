package pebblestore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// inspected are the files that Inspect tells of, in order, each with its text.
func inspected(t *testing.T, fsys vfs.FS) (files, texts []string, err error) {
	t.Helper()
	err = Inspect(t.Context(), "db", Options{FS: fsys}, Inspection{Found: func(file, text string) error {
		files, texts = append(files, file), append(texts, text)
		return nil
	}})
	return files, texts, err
}

// A table with values in files of their own is refused, because the blocks of those files are not
// read. No version of this package writes one.
func TestInspectRefusesBlobFiles(t *testing.T) {
	fsys := vfs.NewMem()
	o := &pebble.Options{FS: fsys, FormatMajorVersion: pebble.FormatNewest}
	o.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{Enabled: true, MinimumSize: 100, MaxBlobReferenceDepth: 10}
	}
	db, err := pebble.Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Set([]byte("k"), bytes.Repeat([]byte("v"), 10_000), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	files, texts, err := inspected(t, fsys)
	if err != nil || len(files) != 2 || files[0] != SumsFile || !strings.HasSuffix(files[1], ".sst") || !strings.Contains(texts[1], errBlobs.Error()) {
		t.Errorf("%v: %q, %v", files, texts, err)
	}
}

// A file that may not be read ends the inspection with an error; one that the disk cannot read is
// damage.
func TestInspectOfAnUnreadableTable(t *testing.T) {
	for _, c := range []struct {
		cause error
		found bool
	}{{syscall.EACCES, false}, {syscall.EIO, true}} {
		fsys := vfs.NewMem()
		s, err := Open("db", Options{FS: fsys})
		if err == nil {
			err = s.Close()
		}
		if err == nil {
			s, err = Open("db", Options{FS: fsys})
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.db.Set([]byte("k"), []byte("v"), pebble.Sync); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		failing := errorfs.Wrap(fsys, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpOpen && strings.HasSuffix(op.Path, ".sst") {
				return &fs.PathError{Op: "open", Path: op.Path, Err: c.cause}
			}
			return nil
		}))
		files, texts, err := inspected(t, failing)
		isTable := slices.ContainsFunc(files, func(name string) bool { return strings.HasSuffix(name, ".sst") })
		if isTable != c.found || (err == nil) != c.found {
			t.Errorf("%v: %v %q, %v", c.cause, files, texts, err)
		}
	}
}

// Inspect finds damage of the newest log where an Open refuses it, and none where the next Open
// takes it for the torn end of a crash.
//
// Proves S14.
func TestInspectOfTheNewestLog(t *testing.T) {
	const flips = 30
	for _, valueBytes := range []int{10, 1 << 10} {
		fsys, path := killed(t, 20, valueBytes)
		whole := readTail(t, fsys, path)
		found := 0
		for i := range flips {
			at := int(whole.end) * i / flips
			damaged := damagedLog(t, fsys, path, at)
			files, texts, err := inspected(t, damaged)
			_, opened := reopened(t, damaged)
			if err != nil || (len(files) > 0) != (opened != nil) || len(files) > 0 && !slices.Equal(files, []string{fsys.PathBase(path)}) {
				t.Errorf("byte %d of %d: Inspect tells of %v %q, %v, and Open of %v", at, whole.end, files, texts, err, opened)
			}
			found += len(files)
		}
		if found < flips/2 {
			t.Errorf("%d of %d damages were found", found, flips)
		}
	}
}

// A flipped bit of any block of a table is found: in its content, in the byte of its kind, and in its
// checksum.
//
// Proves S14.
func TestInspectReadsEachBlock(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s, err := Open("db", Options{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if err := s.db.Set(fmt.Appendf(nil, "key %d", i), bytes.Repeat([]byte{byte(i)}, 300), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.db.DeleteRange([]byte("a"), []byte("b"), pebble.Sync), s.Close()); err != nil {
		t.Fatal(err)
	}
	table := ""
	names, err := mem.List("db")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			table = max(table, name)
		}
	}
	f, err := mem.Open("db/" + table)
	if err != nil {
		t.Fatal(err)
	}
	r, err := openTable(&inspector{ctx: t.Context()}, f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	layout, err := r.Layout()
	if err != nil {
		t.Fatal(err)
	}
	blocks := handles(layout)
	if len(blocks) < 8 {
		t.Fatalf("the table has %d blocks", len(blocks))
	}
	for _, b := range blocks {
		for _, at := range []uint64{b.Offset, b.Offset + b.Length/2, b.Offset + b.Length, b.Offset + b.Length + 4} {
			files, texts, err := inspected(t, damagedLog(t, mem, "db/"+table, int(at)))
			if err != nil || !slices.Equal(files, []string{table}) {
				t.Errorf("byte %d of the block of %d bytes at %d: %v %q, %v", at-b.Offset, b.Length, b.Offset, files, texts, err)
			}
		}
	}
}

package storage

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// failingFS fails each change of the file system with err.
func failingFS(fsys vfs.FS, err error) vfs.FS {
	return errorfs.Wrap(fsys, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpMkdirAll {
			return err
		}
		return nil
	}))
}

// An Open fails because of a full disk, a disk that may not be written, or a missing
// table. Its error is one line, and says how to mend it.
//
// Case ST14. Proves O17, S9.
func TestOpenSaysWhatToDo(t *testing.T) {
	made := func() Options {
		o := memOptions(vfs.NewMem())
		s := open(t, o)
		commit(t, s, func(b *Batch) { b.SetMeta("user", []byte("kept")) })
		checkAndClose(t, s)
		return o
	}
	for _, c := range []struct {
		cause, is error
		says      string
	}{
		{syscall.ENOSPC, ErrNoSpace, "free some space on the disk of store and open it again"},
		{syscall.EDQUOT, ErrNoSpace, "free some space on the disk of store and open it again"},
		{syscall.EROFS, syscall.EROFS, "must be able to write to store"},
		{syscall.EACCES, fs.ErrPermission, "must be able to write to store"},
	} {
		for what, o := range map[string]Options{"new": memOptions(vfs.NewMem()), "old": made()} {
			good := o.Pebble.FS
			o.Pebble.FS = failingFS(good, c.cause)
			t.Run(what+" "+c.cause.Error(), func(t *testing.T) { wantOpenError(t, o, c.is, "store", c.says) })
			o.Pebble.FS = good
			checkAndClose(t, open(t, o)) // nothing is broken when the cause is gone
		}
	}
	for _, cause := range []error{syscall.ENOENT, syscall.ENOTDIR} { // such as below /proc, or below a file
		o := memOptions(vfs.NewMem())
		o.Pebble.FS = errorfs.Wrap(o.Pebble.FS, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpMkdirAll {
				return cause
			}
			return nil
		}))
		wantOpenError(t, o, cause, "store cannot be made", "name another")
	}
	o := made()
	names, err := o.Pebble.FS.List("store")
	if err != nil {
		t.Fatal(err)
	}
	removed := ""
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			removed = name
			err = errors.Join(err, o.Pebble.FS.Remove("store/"+name))
		}
	}
	if removed == "" || err != nil {
		t.Fatalf("%v has no table, %v", names, err)
	}
	wantOpenError(t, o, ErrCorrupt, strings.TrimSuffix(removed, ".sst"), "missing", "bring it back from a copy of the store")
}

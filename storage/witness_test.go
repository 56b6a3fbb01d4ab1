package storage

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// Proves S9: a database that lost acknowledged commits does not open.
func TestWitness(t *testing.T) {
	fs := vfs.NewCrashableMem()
	o := Options{Dir: "db", Witness: true, Pebble: pebblestore.Options{FS: fs}}
	open := func(fs vfs.FS) (*Store, error) {
		o := o
		o.Pebble.FS = fs
		return Open(o)
	}
	s, err := open(fs)
	if err != nil {
		t.Fatal(err)
	}
	var old vfs.FS
	for i := range 5 {
		var b Batch
		b.SetMeta("test", []byte{byte(i)})
		ticket, err := s.Commit(&b)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.WaitDurable(ticket); err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			old = fs.CrashClone(vfs.CrashCloneCfg{})
		}
	}
	now := fs.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Abandon(); err != nil {
		t.Fatal(err)
	}
	if s, err = open(now); err != nil {
		t.Fatalf("after a crash: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = open(now); err != nil {
		t.Fatalf("after a close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The newest witness beside an older database.
	if ok, err := vfs.Clone(now, old, "db/WITNESS", "db/WITNESS"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, err := open(old); !errors.Is(err, ErrAckedDataLost) {
		t.Fatalf("a database behind its witness: %v", err)
	}
}

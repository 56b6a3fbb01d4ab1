package storagetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
	"github.com/holdfast-dev/holdfast/storage"
)

// A commit that fills several blocks of the log is whole or absent, whichever of
// its writes is the last. Proves S9 and O6.
func TestCrashInALargeCommit(t *testing.T) {
	const rows, rowBytes = 12, 10 << 10
	var moments []crashfs.Moment
	fsys := crashfs.New(vfs.NewCrashableMem(), nil)
	st, err := openLarge(fsys)
	if err != nil {
		t.Fatal(err)
	}
	fsys.SetBefore(func(op crashfs.Op) error {
		if strings.HasSuffix(op.Path, ".log") {
			moments = append(moments, fsys.Capture())
		}
		return nil
	})
	var b storage.Batch
	for i := range rows {
		b.SetMeta(fmt.Sprint("row", i), make([]byte, rowBytes))
	}
	ticket, err := st.Commit(&b)
	if err == nil {
		err = st.WaitDurable(ticket)
	}
	fsys.SetBefore(nil)
	if err := errors.Join(err, st.Abandon()); err != nil {
		t.Fatal(err)
	}
	if least := rows * rowBytes / (32 << 10); len(moments) < least {
		t.Fatalf("the commit took %d writes of the log, want at least %d", len(moments), least)
	}
	for i, m := range moments {
		if found := rowsIn(t, m); found != 0 && found != rows {
			t.Errorf("S9: a crash before write %d of the log leaves %d rows of a commit of %d", i, found, rows)
		}
	}
}

// openLarge opens a store with a memtable that takes a commit of several blocks.
func openLarge(fsys vfs.FS) (*storage.Store, error) {
	o := small(fsys, "store")
	o.Pebble.MemTableBytes = 1 << 20
	return storage.Open(o)
}

// rowsIn counts the rows that the store of a moment holds when all that was
// written survives.
func rowsIn(t *testing.T, m crashfs.Moment) (found int) {
	t.Helper()
	mem, err := m.Image(crashfs.KeepAll)
	if err != nil {
		t.Fatal(err)
	}
	st, err := openLarge(mem)
	if err != nil {
		t.Fatal(err)
	}
	err = st.Metas("row", func(string, []byte) error { found++; return nil })
	if err := errors.Join(err, st.Close()); err != nil {
		t.Error(err)
	}
	return found
}

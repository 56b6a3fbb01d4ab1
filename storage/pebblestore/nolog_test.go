package pebblestore

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// put applies a batch with the number n, and syncs it if asked.
func put(t *testing.T, e *Store, n byte, sync bool) {
	t.Helper()
	var b pebble.Batch
	if err := errors.Join(b.Set([]byte("n"), []byte{n}, nil), e.Apply(b.Repr())); err != nil {
		t.Fatal(err)
	}
	if sync {
		if err := e.Sync(); err != nil {
			t.Fatal(err)
		}
	}
}

// number is the number of the last batch; 0: there is none.
func number(t *testing.T, e *Store) byte {
	t.Helper()
	v, closer, err := e.Get([]byte("n"))
	if err == engine.ErrNotFound {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	return v[0]
}

// endMark is how many bytes end each log of Pebble that is closed.
const endMark = 11

// kept is how many bytes the logs of the database have before their ends, and how many tables there are. An old log
// may still be there, because Pebble removes it beside all else. It may be called in a goroutine of Pebble.
func kept(t *testing.T, fsys vfs.FS) (logBytes int64, tables int) {
	t.Helper()
	names, err := fsys.List("db")
	if err != nil {
		t.Error(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			switch info, err := fsys.Stat("db/" + name); {
			case errors.Is(err, fs.ErrNotExist): // removed meanwhile
			case err != nil:
				t.Error(err)
			default:
				logBytes += max(0, info.Size()-endMark)
			}
		}
		if isTable(name) {
			tables++
		}
	}
	return logBytes, tables
}

// A store without a log writes none. A crash takes it back to the last table, and Sync and Close make one.
func TestNoLog(t *testing.T) {
	mem := vfs.NewCrashableMem()
	o := small(mem)
	o.NoLog = true
	e, err := Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	put(t, e, 1, true)
	put(t, e, 2, false)
	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	closed := mem.CrashClone(vfs.CrashCloneCfg{})
	for _, c := range []struct {
		what string
		fsys vfs.FS
		want byte
	}{{"a crash", crashed, 1}, {"Close", closed, 2}} {
		if n, _ := kept(t, c.fsys); n > 0 {
			t.Errorf("after %s the log has %d bytes", c.what, n)
		}
		o.FS, o.MustExist = c.fsys, true
		e, err := Open("db", o)
		if err != nil {
			t.Fatalf("after %s: %v", c.what, err)
		}
		if n := number(t, e); n != c.want {
			t.Errorf("after %s there is batch %d, want %d", c.what, n, c.want)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// BeforeTable comes before each table. Its error is the end of the store, and no table is left.
func TestBeforeTable(t *testing.T) {
	mem := vfs.NewMem()
	o := small(mem)
	o.NoLog = true
	calls, refuse := 0, false
	o.BeforeTable = func() error {
		calls++
		if _, tables := kept(t, mem); tables >= calls {
			t.Errorf("%d tables at call %d", tables, calls)
		}
		if refuse {
			return errBroken
		}
		return nil
	}
	e, err := Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	put(t, e, 1, true)
	if _, tables := kept(t, mem); tables != 1 || calls != 1 {
		t.Fatalf("a flush makes %d tables with %d calls", tables, calls)
	}
	died := make(chan error, 2)
	e.OnDeath(func(err error) { died <- err })
	refuse = true
	put(t, e, 2, false)
	if err := e.Sync(); !errors.Is(err, errBroken) {
		t.Errorf("Sync: %v", err)
	}
	if err := <-died; !errors.Is(err, errBroken) {
		t.Errorf("OnDeath: %v", err)
	}
	if err := e.Close(); !errors.Is(err, errBroken) {
		t.Errorf("Close: %v", err)
	}
	if _, tables := kept(t, mem); tables != 1 {
		t.Errorf("%d tables after a refusal, want 1", tables)
	}
	o.BeforeTable = nil
	if e, err = Open("db", o); err != nil {
		t.Fatal(err)
	}
	if n := number(t, e); n != 1 {
		t.Errorf("there is batch %d, want 1", n)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

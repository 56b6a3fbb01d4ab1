package shardlog_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// proofOf is the position that the file beside a view says; 0 if there is none.
func proofOf(t testing.TB, fsys vfs.FS) shardlog.Position {
	t.Helper()
	text, err := pebblestore.Dir{FS: fsys, Path: "view"}.Read(shardlog.ProofFile)
	if err != nil {
		return 0
	}
	return shardlog.Position(binary.BigEndian.Uint64([]byte(text)))
}

// tableAheadOfItsRow is a view after a power loss, with a table that has batches of records behind its position row, and the log that it is a view
// of. It returns the position of the row.
func tableAheadOfItsRow(t *testing.T) (*vfs.MemFS, *memlog.Log, shardlog.Position) {
	log, mem := memlog.New(), vfs.NewCrashableMem()
	so := onDisk(mem, log, "a")
	over := so.Over
	var view *holding
	so.Over = func(db engine.Engine) (engine.Engine, error) {
		view = newHolding(db)
		return over(view)
	}
	s := openDir(t, so)
	commit(t, s, "x", "1")
	view.hold.Store(true)
	applied := make(chan error)
	go func() {
		_, err := beginWith(s, func(b *storage.Batch) { b.Set([]byte("held"), []byte("1")) })
		applied <- err
	}()
	<-view.held
	commit(t, s, "x", "2")
	if err := view.Engine.Sync(); err != nil { // makes a table
		t.Fatal(err)
	}
	lost := mem.CrashClone(vfs.CrashCloneCfg{})
	close(view.release)
	if err := errors.Join(<-applied, s.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := pebblestore.Open("view", pebblestore.Options{FS: lost, CacheBytes: 1 << 20, NoLog: true, MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	at, _, err := shardlog.ViewPosition(db)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return lost, log, at
}

// openLost opens a view whose log has lost the records behind the position row, and has grown since in the hands of another owner.
func openLost(t *testing.T, withProof bool, grown int) (map[string]string, *memlog.Log, error) {
	fsys, log, at := tableAheadOfItsRow(t)
	if p := proofOf(t, fsys); p <= at {
		t.Fatalf("the file says %d, the row %d", p, at)
	}
	if !withProof {
		if err := fsys.Remove("view/" + shardlog.ProofFile); err != nil {
			t.Fatal(err)
		}
	}
	log.Rewind(0, at)
	other := start(t, options(log, "other"), memstore.New())
	for i := range grown {
		store(t, other, "other", fmt.Sprint(i))
	}
	closeEngine(t, other)
	var found map[string]string
	so := onDisk(fsys, log, "b")
	over := so.Over
	so.Over = func(db engine.Engine) (engine.Engine, error) {
		e, err := over(db)
		if err == nil {
			found = rows(t, e)
		}
		return e, err
	}
	s, err := storage.Open(so)
	if err == nil {
		err = s.Close()
	}
	return found, log, err
}

// Proves N7: a view with a table that has batches of lost records is refused, though its position row is older than the loss. Without the
// file beside it, it would keep them unseen.
func TestTableAheadOfItsRow(t *testing.T) {
	for grown := range 5 {
		_, _, err := openLost(t, true, grown)
		is(t, fmt.Sprint("grown by ", grown), err, storage.ErrAckedDataLost)
		if !contains(err, "view is view") {
			t.Errorf("the error does not name the directory: %v", err)
		}
	}
	key := "x"
	found, log, err := openLost(t, false, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := rows(t, replayed(t, log))
	for k := range found {
		if strings.HasSuffix(k, key) && found[k] != want[k] {
			return
		}
	}
	t.Error("without the file the view has no lost batch, so the test is blind")
}

// The file costs a commit nothing: it is written before a table, and only if the log has acknowledged a record since.
func TestProofIsWrittenBeforeATable(t *testing.T) {
	log, mem := memlog.New(), vfs.NewCrashableMem()
	so := onDisk(mem, log, "a")
	var view engine.Engine
	over := so.Over
	so.Over = func(db engine.Engine) (engine.Engine, error) {
		view = db
		return over(db)
	}
	s := openDir(t, so)
	for i := range 20 {
		commit(t, s, "x", fmt.Sprint(i))
	}
	if p := proofOf(t, mem); p != 0 {
		t.Errorf("before the first table the file says %d", p)
	}
	if err := view.Sync(); err != nil {
		t.Fatal(err)
	}
	if p, h := proofOf(t, mem.CrashClone(vfs.CrashCloneCfg{})), shardlogtest.Head(t, log, 0); p != h.Last {
		t.Errorf("after a table the file says %d, the log %d", p, h.Last)
	}
	checkAndClose(t, s)
}

// A file that is damaged is an error that names it.
func TestDamagedProofIsRefused(t *testing.T) {
	log, mem := memlog.New(), vfs.NewMem()
	so := onDisk(mem, log, "a")
	s := openDir(t, so)
	commit(t, s, "x", "1")
	checkAndClose(t, s)
	dir := pebblestore.Dir{FS: mem, Path: "view"}
	text, err := dir.Read(shardlog.ProofFile)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(text) {
		flipped := []byte(text)
		flipped[n] ^= 1
		for _, bad := range []string{string(flipped), text[:n]} {
			if err := dir.Write(shardlog.ProofFile, bad); err != nil {
				t.Fatal(err)
			}
			if _, err := storage.Open(so); !errors.Is(err, storage.ErrCorrupt) || !contains(err, shardlog.ProofFile) {
				t.Errorf("byte %d: %v", n, err)
			}
		}
	}
	if err := dir.Write(shardlog.ProofFile, text); err != nil {
		t.Fatal(err)
	}
	checkAndClose(t, openDir(t, so))
}

// Proves N7: after a power loss at any moment, and a log that loses its records from any place on and grows again, a view is refused or has exactly
// what the log has.
func TestPowerLossAndLoss(t *testing.T) {
	refused, opened := 0, 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		log, mem := memlog.New(), vfs.NewCrashableMem()
		s := openDir(t, onDisk(mem, log, "a"))
		n := 50 + r.IntN(300)
		var last storage.Ticket
		for range n {
			ticket, err := beginWith(s, func(b *storage.Batch) { randomBatch(b, r, 0) })
			if err == nil && r.IntN(10) == 0 {
				err = s.WaitDurable(ticket)
			}
			if err != nil {
				t.Fatal(seed, err)
			}
			last = ticket
		}
		if err := s.WaitDurable(last); err != nil {
			t.Fatal(seed, err)
		}
		lost := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
		if err := s.Close(); err != nil {
			t.Fatal(seed, err)
		}
		head := shardlogtest.Head(t, log, 0)
		log.Rewind(0, shardlog.Position(r.IntN(int(head.Last)+1)))
		other := start(t, options(log, "other"), memstore.New())
		for i := range r.IntN(3) {
			store(t, other, "other", fmt.Sprint(i))
		}
		closeEngine(t, other)
		so := onDisk(lost, log, "b")
		over := so.Over
		so.Over = func(db engine.Engine) (engine.Engine, error) {
			e, err := over(db)
			if err == nil {
				if got, want := rows(t, e), rows(t, replayed(t, log)); !maps.Equal(got, want) {
					t.Errorf("seed %d: the view differs from the log in %d and %d rows", seed, len(got), len(want))
				}
			}
			return e, err
		}
		s, err := storage.Open(so)
		if err != nil {
			is(t, fmt.Sprint("seed ", seed), err, storage.ErrAckedDataLost)
			refused++
			continue
		}
		opened++
		checkAndClose(t, s)
	}
	t.Logf("%d views were refused, %d opened", refused, opened)
	if refused < 3 || opened < 3 {
		t.Errorf("%d views were refused and %d opened, want some of both", refused, opened)
	}
}

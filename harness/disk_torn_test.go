package harness

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// tornAfter applies batches of 3 KB to a disk on Pebble and to a shadow, syncs the
// first two, calls last, and tears the write of the others.
func tornAfter(t *testing.T, seed uint64, toShadow func(shadow *memstore.Store, n int, b *storage.Batch), last ...func(*pebbleDisk)) (*pebbleDisk, *memstore.Store, int, error) {
	t.Helper()
	const batches, synced = 8, 2
	d, shadow := newPebbleDisk().(*pebbleDisk), memstore.New()
	e, err := d.open(seam.Seams{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range batches {
		var b storage.Batch
		b.Set(fmt.Appendf(nil, "key%d", n), bytes.Repeat([]byte{byte(n)}, 3000))
		if err := e.Apply(b.Repr()); err != nil {
			t.Fatal(err)
		}
		toShadow(shadow, n, &b)
		if n == synced-1 {
			if err := e.Sync(); err != nil {
				t.Fatal(err)
			}
			_ = shadow.Sync()
		}
	}
	for _, do := range last {
		do(d)
	}
	kept, err := d.tear(seed, shadow)
	return d, shadow, kept, err
}

func apply(shadow *memstore.Store, _ int, b *storage.Batch) { _ = shadow.Apply(b.Repr()) }

// A torn write leaves a prefix of the commits, and tear returns its length. The same seed
// leaves the same prefix, and different seeds leave prefixes of several lengths.
func TestTornWriteLeavesAPrefix(t *testing.T) {
	lengths := make(map[int]int)
	for seed := uint64(1); seed < 80; seed += 2 {
		d, shadow, kept, err := tornAfter(t, seed, apply)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		view, err := d.view()
		if err == nil {
			err = compareStores(view, shadow.Crash(kept))
		}
		if err != nil {
			t.Errorf("seed %d, %d survive: %v", seed, kept, err)
		}
		d.close()
		again, _, keptAgain, err := tornAfter(t, seed, apply)
		if keptAgain != kept || err != nil {
			t.Errorf("seed %d leaves %d, and %d the next time, %v", seed, kept, keptAgain, err)
		}
		again.close()
		lengths[kept]++
	}
	if len(lengths) < 3 || lengths[0] == 40 {
		t.Errorf("how many survive, and how often: %v", lengths)
	}
}

// A commit that reaches the store in two batches is found torn.
func TestTornCommitIsFound(t *testing.T) {
	found := 0
	for seed := uint64(1); seed < 80; seed += 2 {
		var half []byte
		d, _, _, err := tornAfter(t, seed, func(shadow *memstore.Store, n int, b *storage.Batch) {
			if n%2 == 0 {
				half = bytes.Clone(b.Repr())
				return
			}
			var whole storage.Batch
			for _, repr := range [][]byte{half, b.Repr()} {
				_ = engine.ReadBatch(repr, func(r engine.Record) { whole.Set(r.Key, r.Value) })
			}
			_ = shadow.Apply(whole.Repr())
		})
		if err != nil {
			found++
			if !strings.Contains(err.Error(), "no prefix of the commits") {
				t.Fatal(err)
			}
		}
		d.close()
	}
	if found == 0 {
		t.Error("no seed finds a commit that is torn")
	}
}

// tidying is an engine that writes and syncs another file beside each sync.
type tidying struct {
	engine.Engine
	fs vfs.FS
}

func (e tidying) Sync() error {
	f, err := e.fs.Create(pebbleDir+"/other", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte("other"))
	return errors.Join(err, f.Sync(), f.Close(), e.Engine.Sync())
}

// A sync of another file beside the torn write does not change the blocks that it
// leaves.
func TestTornWriteBesideAnotherSync(t *testing.T) {
	survive := func(seed uint64, last ...func(*pebbleDisk)) int {
		d, _, kept, err := tornAfter(t, seed, apply, last...)
		d.close()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		return kept
	}
	for seed := uint64(1); seed < 80; seed += 2 {
		if kept, want := survive(seed, tidy), survive(seed); kept != want {
			t.Errorf("seed %d: %d commits survive beside another sync, and %d without", seed, kept, want)
		}
	}
}

func (e tidying) DB() *pebble.DB { return e.Engine.(interface{ DB() *pebble.DB }).DB() }

func tidy(d *pebbleDisk) { d.engine.Engine = tidying{d.engine.Engine, d.fs} }

package raw_test

import (
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/storage"
)

// TestPipeline applies batches and finds their rows; the disk has seen a sync.
func TestPipeline(t *testing.T) {
	disk := measure.NewDisk()
	db, err := raw.Open(t.TempDir(), disk)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	syncs := disk.Meters()["syncs"]
	before := syncs()
	p := raw.NewPipeline(db, 4)
	var b storage.Batch
	for i := range byte(20) {
		b.Reset()
		b.Set([]byte{i}, []byte{i})
		if err := p.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	for i := range byte(20) {
		v, closer, err := db.Get([]byte{i})
		if err != nil || v[0] != i {
			t.Fatalf("key %d: %v, %v", i, v, err)
		}
		closer.Close()
	}
	if syncs() == before {
		t.Error("no sync was counted")
	}
}

// TestTurns counts the adds of many callers to few objects.
func TestTurns(t *testing.T) {
	db, err := raw.Open(t.TempDir(), measure.NewDisk())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	turns := raw.NewTurns(db, 3)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 30 {
				if err := turns.Increment(i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for i := range 3 {
		v, err := turns.Get(i)
		if err != nil || v[7] != 80 {
			t.Errorf("object %d: %v, %v; want 80", i, v, err)
		}
	}
}

// TestMailboxes answers callers that wait for one another.
func TestMailboxes(t *testing.T) {
	boxes := raw.NewMailboxes(2)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 1000 {
				boxes.Read(i)
			}
		})
	}
	all.Wait()
}

package storage

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// The batch of the benchmarks: a header and three keys of an object, 100 bytes
// each, as a small turn makes it.
func benchBatch(b *Batch, o Object, n int) {
	var value [100]byte
	value[0] = byte(n)
	b.Reset()
	b.For(o.ID)
	b.SetHeader(o)
	for _, key := range [...]string{"a", "b", "c"} {
		b.SetData(o, key, value[:])
	}
}

// benchStore opens a store on the disk of this machine.
func benchStore(b *testing.B) (*Store, Object) {
	b.Helper()
	s := open(b, Options{Dir: filepath.Join(b.TempDir(), "store")})
	b.Cleanup(func() { checkAndClose(b, s) })
	return s, newObject(b, s, "bench", "object")
}

// benchRaw opens the same database without a Store.
func benchRaw(b *testing.B) (*pebble.DB, Object) {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "raw")
	e, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	return e.DB(), Object{ID: ID{"bench", "object"}, Number: 1}
}

// rawBatch makes the same batch in Pebble's own.
func rawBatch(b *testing.B, db *pebble.DB, repr []byte) *pebble.Batch {
	batch := db.NewBatchWithSize(len(repr))
	if err := batch.SetRepr(append(batch.Repr()[:0], repr...)); err != nil {
		b.Fatal(err)
	}
	return batch
}

// BenchmarkCommit is a commit made visible, and not waited for.
func BenchmarkCommit(b *testing.B) {
	b.Run("store", func(b *testing.B) {
		s, o := benchStore(b)
		b.ReportAllocs()
		var batch Batch
		for n := 0; b.Loop(); n++ {
			benchBatch(&batch, o, n)
			if _, err := s.Commit(&batch); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("raw", func(b *testing.B) {
		db, o := benchRaw(b)
		b.ReportAllocs()
		var batch Batch
		for n := 0; b.Loop(); n++ {
			benchBatch(&batch, o, n)
			raw := rawBatch(b, db, batch.Repr())
			if err := db.Apply(raw, pebble.NoSync); err != nil {
				b.Fatal(err)
			}
			if err := raw.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// parallelism is how many callers there are for each core.
var parallelism = []int{1, 8, 32, 128, 512}

// BenchmarkCommitDurable is a commit that is waited for, by many callers at once:
// each waits for its own before it makes the next.
func BenchmarkCommitDurable(b *testing.B) {
	for _, p := range parallelism {
		b.Run(fmt.Sprintf("store/callers=%d×cores", p), func(b *testing.B) {
			s, o := benchStore(b)
			b.ReportAllocs()
			b.SetParallelism(p)
			b.RunParallel(func(pb *testing.PB) {
				var batch Batch
				for n := 0; pb.Next(); n++ {
					benchBatch(&batch, o, n)
					ticket, err := s.Commit(&batch)
					if err == nil {
						err = s.WaitDurable(ticket)
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
		b.Run(fmt.Sprintf("raw/callers=%d×cores", p), func(b *testing.B) {
			db, o := benchRaw(b)
			b.ReportAllocs()
			b.SetParallelism(p)
			b.RunParallel(func(pb *testing.PB) {
				var batch Batch
				for n := 0; pb.Next(); n++ {
					benchBatch(&batch, o, n)
					raw := rawBatch(b, db, batch.Repr())
					err := db.ApplyNoSyncWait(raw, pebble.Sync)
					if err == nil {
						err = raw.SyncWait()
					}
					if err == nil {
						err = raw.Close()
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkRead is a read of one key: from the store, through a batch that does
// not hold it, and from Pebble alone.
func BenchmarkRead(b *testing.B) {
	s, o := benchStore(b)
	var batch Batch
	benchBatch(&batch, o, 1)
	if _, err := s.Commit(&batch); err != nil {
		b.Fatal(err)
	}
	key := dataKey(o, "b")
	other := o
	other.Number++
	benchBatch(&batch, other, 1)
	for _, c := range []struct {
		name string
		read func() error
	}{
		{"store", func() error { _, _, err := s.Data(nil, o, "b"); return err }},
		{"batch", func() error { _, _, err := s.Data(&batch, o, "b"); return err }},
		{"raw", func() error {
			_, closer, err := s.engine.(*pebblestore.Store).DB().Get(key)
			if err == nil {
				err = closer.Close()
			}
			return err
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

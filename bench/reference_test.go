package bench

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// quiet is a logger that says nothing and does not go on after a fatal error.
type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, a ...any) { panic(f) }

// openRaw opens bare Pebble as storage does.
func openRaw(b *testing.B) *pebble.DB {
	b.Helper()
	o := &pebble.Options{
		Logger: quiet{}, MemTableSize: 64 << 20, CacheSize: 64 << 20,
		FormatMajorVersion: pebble.FormatNewest, L0StopWritesThreshold: 24,
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	db, err := pebble.Open(b.TempDir(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return db
}

// bareTurn is the least that a durable turn can be: a mutex, a number in memory,
// a batch of one key applied without waiting, and the wait for the sync outside
// the mutex.
type bareTurn struct {
	mu  sync.Mutex
	key []byte
	n   uint64
}

func (o *bareTurn) increment(b *testing.B, db *pebble.DB) {
	batch := db.NewBatch()
	o.mu.Lock()
	o.n++
	var v [8]byte
	binary.BigEndian.PutUint64(v[:], o.n)
	err := batch.Set(o.key, v[:], nil)
	if err == nil {
		err = db.ApplyNoSyncWait(batch, pebble.Sync)
	}
	o.mu.Unlock()
	if err == nil {
		err = batch.SyncWait()
	}
	if err == nil {
		err = batch.Close()
	}
	if err != nil {
		b.Error(err)
	}
}

// inParallel runs fn b.N times from the given number of goroutines.
func inParallel(b *testing.B, callers int, fn func(i int)) {
	b.Helper()
	work := make(chan int, 4096)
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for first := range work {
				for i := first; i < min(first+64, b.N); i++ {
					fn(i)
				}
			}
		})
	}
	for i := 0; i < b.N; i += 64 {
		work <- i
	}
	close(work)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

package backup

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// Create reads a store at the rate of LimitRate and no faster, and without a limit it does not wait. The end of its context
// ends the wait. Proves B3.
func TestLimitRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := vfs.NewMem()
		o := options(fsys, nil)
		o.Pebble = pebblestore.Options{FS: fsys}
		store, err := storage.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Abandon()
		value, random := make([]byte, 1<<20), rand.NewPCG(1, 2)
		for n := range 16 {
			for i := 0; i < len(value); i += 8 {
				binary.LittleEndian.PutUint64(value[i:], random.Uint64())
			}
			var b storage.Batch
			b.SetMeta(fmt.Sprint("v", n), value)
			if _, err := store.Commit(&b); err != nil {
				t.Fatal(err)
			}
		}
		create := func(name string, rate int64, ctx context.Context) (time.Duration, int64, error) {
			r, err := Open(name, o)
			if err != nil {
				t.Fatal(err)
			}
			r.LimitRate(rate)
			began := time.Now()
			s, err := r.Create(ctx, store)
			return time.Since(began), s.Bytes, err
		}
		logs := 0
		if err := store.CheckpointPaced(t.Context(), "counted", func(bytes int) error { logs += bytes; return nil }); err != nil || logs < 1<<20 {
			t.Errorf("the checkpoint writes %d bytes, %v", logs, err)
		}
		took, bytes, err := create("free", 0, t.Context())
		if err != nil || took != 0 {
			t.Errorf("without a limit it took %v: %v", took, err)
		}
		took, _, err = create("slow", 1<<20, t.Context())
		least := time.Duration(int64(logs)+2*bytes-burstBytes) * time.Second >> 20
		if err != nil || took < least-time.Second || took > least+time.Second {
			t.Errorf("%d bytes of logs, and %d read and written at 1 MiB a second, took %v, want %v: %v", logs, bytes, took, least, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if took, _, err = create("ended", 1<<20, ctx); err == nil || took != 2*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

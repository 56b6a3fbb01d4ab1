package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/object"
)

// sleeper sets an alarm and does nothing when it fires.
type sleeper struct{ st *object.State }

func (s *sleeper) Alarm(context.Context, object.AlarmInfo) error {
	if fired.Add(1) == expected.Load() {
		close(allFired)
	}
	return nil
}

var (
	fired, expected atomic.Int64
	allFired        chan struct{}

	sleepers = object.Define("sleeper", func(_ context.Context, st *object.State) (*sleeper, error) { return &sleeper{st}, nil })
	arm      = object.Handle(sleepers, "arm", func(s *sleeper, ctx context.Context, at time.Time) (bool, error) {
		return true, s.st.SetAlarm(ctx, at)
	})
)

// BenchmarkP7 is alarms due at once with an empty handler: the time from when
// they are due until the effect of the last is committed. Its reference does the
// same row changes with bare Pebble, pipelined.
func BenchmarkP7(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("alarms=%d/holdfast", n), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				h, ctx := openHost(b, sleepers), context.Background()
				fired.Store(0)
				expected.Store(int64(n))
				allFired = make(chan struct{})
				due := time.Now().Add(time.Duration(n)*20*time.Microsecond + 2*time.Second)
				arms(b, h, ctx, n, due)
				if wait := time.Until(due); wait > 0 {
					time.Sleep(wait)
				} else {
					b.Fatal("arming took longer than expected")
				}
				b.StartTimer()
				<-allFired
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "alarms/s")
		})
		b.Run(fmt.Sprintf("alarms=%d/reference", n), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				db := openRaw(b)
				fillIndex(b, db, n)
				b.StartTimer()
				drainIndex(b, db)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "alarms/s")
		})
	}
}

func arms(b *testing.B, h *object.Host, ctx context.Context, n int, due time.Time) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 512 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if _, err := arm.Call(ctx, h, fmt.Sprint(i), due, object.Unconfirmed()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func rowKeys(i uint64) (index, row, header []byte) {
	index = binary.BigEndian.AppendUint64([]byte{'t', 0, 0, 0, 0, 0, 0, 0, 1}, i)
	row = binary.BigEndian.AppendUint64([]byte{'a'}, i)
	header = fmt.Appendf([]byte{'h'}, "sleeper/%d", i)
	return index, row, header
}

func fillIndex(b *testing.B, db *pebble.DB, n int) {
	batch := db.NewBatch()
	value := make([]byte, 24)
	for i := range uint64(n) {
		index, row, header := rowKeys(i)
		for _, k := range [][]byte{index, row, header} {
			if err := batch.Set(k, value, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := batch.Commit(pebble.Sync); err != nil {
		b.Fatal(err)
	}
	batch.Close()
}

// drainIndex removes the rows of each alarm in a batch of its own, pipelined.
func drainIndex(b *testing.B, db *pebble.DB) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{'t'}, UpperBound: []byte{'u'}})
	if err != nil {
		b.Fatal(err)
	}
	defer it.Close()
	applied := make(chan *pebble.Batch, 1024)
	var wg sync.WaitGroup
	wg.Go(func() {
		for batch := range applied {
			if err := batch.SyncWait(); err != nil {
				b.Error(err)
			}
			batch.Close()
		}
	})
	for it.First(); it.Valid(); it.Next() {
		index, row, header := rowKeys(binary.BigEndian.Uint64(it.Key()[9:]))
		batch := db.NewBatch()
		for _, k := range [][]byte{index, row, header} {
			if err := batch.Delete(k, nil); err != nil {
				b.Fatal(err)
			}
		}
		if err := db.ApplyNoSyncWait(batch, pebble.Sync); err != nil {
			b.Fatal(err)
		}
		applied <- batch
	}
	close(applied)
	wg.Wait()
}

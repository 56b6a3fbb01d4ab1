package bench

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// BenchmarkP12 is a task from Enqueue to done, durable at each step, with an
// empty work: 4 partitions, 512 producers. Its reference writes rows as many and
// as large with bare Pebble: a synced batch for each task that is submitted, and
// begins and ends merged up to 64 a batch.
func BenchmarkP12(b *testing.B) {
	b.Run("holdfast", func(b *testing.B) {
		ctx := context.Background()
		pool := workerpool.New(workerpool.Config[int, struct{}]{
			Name: "bench", Partitions: 4, Concurrency: 1024, KeepDone: -1,
			Work: func(context.Context, *workerpool.Task[int]) (struct{}, error) { return struct{}{}, nil },
		})
		h := openHost(b, pool)
		inParallel(b, 512, func(i int) {
			if _, err := pool.Enqueue(ctx, h, i); err != nil {
				b.Error(err)
			}
		})
		if err := pool.Drain(ctx, h); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	})
	b.Run("reference", func(b *testing.B) {
		db := openRaw(b)
		pending := make(chan uint64, 1<<20)
		var ends sync.WaitGroup
		for p := range 4 {
			ends.Go(func() { rawWorker(b, db, byte(p), pending) })
		}
		inParallel(b, 512, func(i int) {
			rawCommit(b, db, func(batch *pebble.Batch) error {
				return set(batch, rawKey('t', uint64(i)), 100, rawKey('c', uint64(i%4)), 40)
			})
			pending <- uint64(i)
		})
		close(pending)
		ends.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	})
}

// rawWorker begins and ends tasks, up to 64 in a batch.
func rawWorker(b *testing.B, db *pebble.DB, partition byte, pending <-chan uint64) {
	counters := rawKey('c', uint64(partition))
	for first := range pending {
		tasks := []uint64{first}
	more:
		for len(tasks) < 64 {
			select {
			case i, ok := <-pending:
				if !ok {
					break more
				}
				tasks = append(tasks, i)
			default:
				break more
			}
		}
		rawCommit(b, db, func(batch *pebble.Batch) error { // begin: the task's row and its execution's
			for _, i := range tasks {
				if err := set(batch, rawKey('t', i), 100, rawKey('x', i), 60); err != nil {
					return err
				}
			}
			return set(batch, counters, 40, rawKey('a', uint64(partition)), 30)
		})
		rawCommit(b, db, func(batch *pebble.Batch) error { // end: both are gone
			for _, i := range tasks {
				if err := batch.Delete(rawKey('t', i), nil); err != nil {
					return err
				}
				if err := batch.Delete(rawKey('x', i), nil); err != nil {
					return err
				}
			}
			return set(batch, counters, 40, rawKey('a', uint64(partition)), 30)
		})
	}
}

func rawKey(kind byte, i uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{'p', 'o', 'o', 'l', '/', kind}, i)
}

var filler = make([]byte, 256)

func set(batch *pebble.Batch, k1 []byte, n1 int, k2 []byte, n2 int) error {
	if err := batch.Set(k1, filler[:n1], nil); err != nil {
		return err
	}
	return batch.Set(k2, filler[:n2], nil)
}

func rawCommit(b *testing.B, db *pebble.DB, fill func(*pebble.Batch) error) {
	batch := db.NewBatch()
	err := fill(batch)
	if err == nil {
		err = batch.Commit(pebble.Sync)
	}
	if err == nil {
		err = batch.Close()
	}
	if err != nil {
		b.Error(err)
	}
}

package workload

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// merged is how many begins, or ends, of RawPool share a batch at most.
const merged = 64

// RawPool is the reference of Pool: rows as many and as large with bare Pebble, a
// synced batch for each task that is submitted, begins and ends merged.
type RawPool struct{ DB *pebble.DB }

// Run submits n tasks from as many producers as Pool and returns when they are done.
func (r RawPool) Run(ctx context.Context, n int) error {
	const partitions = 4
	pending := make(chan uint64, 1<<16)
	var ends sync.WaitGroup
	errs := make([]error, partitions)
	for p := range partitions {
		ends.Go(func() { errs[p] = r.work(byte(p), pending) })
	}
	err := measure.Each(ctx, Producers, n, func(i int) error {
		err := r.commit(func(b *pebble.Batch) error {
			return set(b, rawKey('t', uint64(i)), 100, rawKey('c', uint64(i%partitions)), 40)
		})
		if err == nil {
			pending <- uint64(i)
		}
		return err
	})
	close(pending)
	ends.Wait()
	for _, e := range errs {
		if err == nil {
			err = e
		}
	}
	return err
}

// work begins and ends tasks, some in a batch. After an error it only takes them.
func (r RawPool) work(partition byte, pending <-chan uint64) (err error) {
	tasks := make([]uint64, 0, merged)
	for first := range pending {
		tasks = take(append(tasks[:0], first), pending)
		if err == nil {
			err = r.begin(partition, tasks)
		}
		if err == nil {
			err = r.end(partition, tasks)
		}
	}
	return err
}

// take adds the pending tasks to tasks, up to their bound.
func take(tasks []uint64, pending <-chan uint64) []uint64 {
	for len(tasks) < merged {
		select {
		case i, ok := <-pending:
			if !ok {
				return tasks
			}
			tasks = append(tasks, i)
		default:
			return tasks
		}
	}
	return tasks
}

// begin writes the row of each task's execution.
func (r RawPool) begin(partition byte, tasks []uint64) error {
	return r.commit(func(b *pebble.Batch) error {
		for _, i := range tasks {
			if err := set(b, rawKey('t', i), 100, rawKey('x', i), 60); err != nil {
				return err
			}
		}
		return set(b, rawKey('c', uint64(partition)), 40, rawKey('a', uint64(partition)), 30)
	})
}

// end removes the rows of each task.
func (r RawPool) end(partition byte, tasks []uint64) error {
	return r.commit(func(b *pebble.Batch) error {
		for _, i := range tasks {
			if err := b.Delete(rawKey('t', i), nil); err != nil {
				return err
			}
			if err := b.Delete(rawKey('x', i), nil); err != nil {
				return err
			}
		}
		return set(b, rawKey('c', uint64(partition)), 40, rawKey('a', uint64(partition)), 30)
	})
}

func (r RawPool) commit(fill func(*pebble.Batch) error) error {
	b := r.DB.NewBatch()
	err := fill(b)
	if err == nil {
		err = b.Commit(pebble.Sync)
	}
	if err == nil {
		err = b.Close()
	}
	return err
}

func rawKey(kind byte, i uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{'p', 'o', 'o', 'l', '/', kind}, i)
}

var filler = make([]byte, 256)

func set(b *pebble.Batch, k1 []byte, n1 int, k2 []byte, n2 int) error {
	if err := b.Set(k1, filler[:n1], nil); err != nil {
		return err
	}
	return b.Set(k2, filler[:n2], nil)
}

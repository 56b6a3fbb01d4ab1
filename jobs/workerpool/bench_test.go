package workerpool_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// BenchmarkPool is a task from Enqueue to done, durable at each step: 4
// partitions, 512 producers, an empty work.
func BenchmarkPool(b *testing.B) {
	pool := workerpool.New(workerpool.Config[int, struct{}]{
		Name: "bench", Partitions: 4, Concurrency: 1024, Retention: jobs.Retention{Completed: workerpool.AtOnce, Cancelled: workerpool.AtOnce},
		Work: func(context.Context, *workerpool.Task[int]) (struct{}, error) { return struct{}{}, nil },
	})
	h := open(b, b.TempDir(), pool)

	b.ResetTimer()
	produce(b, 512, b.N, func(i int) error {
		_, err := pool.Enqueue(ctx, h, i)
		return err
	})
	if err := pool.Drain(ctx, h); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkPoolBacklog is BenchmarkPool beside a queue with a long backlog, which
// gets one of a thousand turns: the cost must not depend on its length.
func BenchmarkPoolBacklog(b *testing.B) {
	for _, stored := range []int{0, 10_000, 100_000} {
		b.Run(strconv.Itoa(stored), func(b *testing.B) { benchmarkBacklog(b, stored) })
	}
}

func benchmarkBacklog(b *testing.B, stored int) {
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan struct{})
	pool := workerpool.New(workerpool.Config[int, struct{}]{
		Name: "bench", Partitions: 4, Concurrency: 1024, Retention: jobs.Retention{Completed: workerpool.AtOnce, Cancelled: workerpool.AtOnce}, Queues: map[string]int{"backlog": 1, "": 1000},
		Work: func(_ context.Context, t *workerpool.Task[int]) (struct{}, error) {
			if t.Queue == "" && left.Add(-1) == 0 {
				close(done)
			}
			return struct{}{}, nil
		},
	})
	h := open(b, b.TempDir(), pool)
	if err := pool.Pause(ctx, h); err != nil {
		b.Fatal(err)
	}
	for n := 0; n < stored; n += 1000 {
		items := make([]workerpool.Item[int], 1000)
		for i := range items {
			items[i] = workerpool.Item[int]{In: n + i, Options: []workerpool.Option{workerpool.Queue("backlog")}}
		}
		must(pool.EnqueueBatch(ctx, h, items))
	}
	b.ResetTimer()
	if err := pool.Resume(ctx, h); err != nil {
		b.Fatal(err)
	}
	produce(b, 512, b.N, func(i int) error {
		_, err := pool.Enqueue(ctx, h, i)
		return err
	})
	<-done
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

// produce calls f n times from several goroutines.
func produce(b *testing.B, producers, n int, f func(i int) error) {
	var all sync.WaitGroup
	for p := range producers {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := p; i < n; i += producers {
				if err := f(i); err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	all.Wait()
}

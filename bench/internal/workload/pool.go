package workload

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Producers is how many tasks submit to a pool at a time.
const Producers = 512

// Pool is a host with a worker pool of 4 partitions and empty work.
type Pool struct {
	*Host
	pool *workerpool.Pool[int, struct{}]
	left atomic.Int64
	all  atomic.Pointer[chan struct{}]
}

// OpenPool opens a host with a pool. kept is how long done tasks are kept.
func OpenPool(dir string, kept time.Duration) (*Pool, error) {
	return openPool(dir, kept, nil, func(context.Context, *workerpool.Task[int]) error { return nil })
}

// OpenPhases is OpenPool with tasks of one empty phase.
func OpenPhases(dir string, kept time.Duration) (*Pool, error) {
	return openPool(dir, kept, []string{"phase"}, func(ctx context.Context, t *workerpool.Task[int]) error {
		_, err := workerpool.Phase(ctx, t, "phase", func(context.Context) (int, error) { return 0, nil })
		return err
	})
}

// openPool opens a host with a pool of that work.
func openPool(dir string, kept time.Duration, phases []string, work func(context.Context, *workerpool.Task[int]) error) (*Pool, error) {
	p := &Pool{}
	p.pool = workerpool.New(workerpool.Config[int, struct{}]{
		Name: "bench", Partitions: 4, Concurrency: 1024, Retention: jobs.Retention{Completed: kept}, Phases: phases,
		Work: func(ctx context.Context, t *workerpool.Task[int]) (struct{}, error) {
			err := work(ctx, t)
			if p.left.Add(-1) == 0 {
				close(*p.all.Load())
			}
			return struct{}{}, err
		},
	})
	h, err := OpenHost(dir, object.Options{}, p.pool)
	p.Host = h
	return p, err
}

// Run submits n tasks and returns when all are done and that is durable. Those
// of Queue stay.
func (p *Pool) Run(ctx context.Context, n int, lat *measure.Latencies) error {
	all := make(chan struct{})
	p.all.Store(&all)
	p.left.Store(int64(n))
	err := measure.Each(ctx, Producers, n, func(i int) error {
		start := time.Now()
		_, err := p.pool.Enqueue(ctx, p.Host, i)
		if lat != nil {
			lat.RecordAs(i, time.Since(start))
		}
		return err
	})
	if err != nil {
		return err
	}
	select {
	case <-all:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return p.settle(ctx)
}

// settle waits until no task runs, by a pause, which the next tasks end.
func (p *Pool) settle(ctx context.Context) error {
	if err := p.pool.Pause(ctx, p.Host); err != nil {
		return err
	}
	for {
		s, err := p.pool.Stats(ctx, p.Host)
		if err != nil || s.Running == 0 {
			return join(err, func() error { return p.pool.Resume(ctx, p.Host) })
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// Queue submits n tasks that are not due while the benchmark runs.
func (p *Pool) Queue(ctx context.Context, n int) error {
	const each = 10_000
	later := []workerpool.Option{workerpool.Delay(24 * time.Hour)}
	for done := 0; done < n; done += each {
		items := make([]workerpool.Item[int], min(each, n-done))
		for i := range items {
			items[i] = workerpool.Item[int]{In: done + i, Options: later}
		}
		if _, err := p.pool.EnqueueBatch(ctx, p.Host, items); err != nil {
			return err
		}
	}
	return nil
}

// One submits a task and waits until it is done.
func (p *Pool) One(ctx context.Context, i int) error {
	all := make(chan struct{})
	p.all.Store(&all)
	p.left.Store(1)
	ref, err := p.pool.Enqueue(ctx, p.Host, i)
	if err != nil {
		return err
	}
	_, err = p.pool.Wait(ctx, p.Host, ref.ID)
	return err
}

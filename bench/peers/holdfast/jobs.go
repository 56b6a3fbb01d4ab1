package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/queue"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// pool is a worker pool as a queue.
type pool struct {
	*workload.Host
	pool *workerpool.Pool[int, struct{}]
}

func queued(ctx context.Context, dir string, l queue.Load, r *figure.Reporter) (err error) {
	t := &queue.Tracker{}
	p := &pool{pool: workerpool.New(workerpool.Config[int, struct{}]{
		Name: "bench", Partitions: 4, Concurrency: 1024, Retention: jobs.Retention{Completed: workerpool.AtOnce, Cancelled: workerpool.AtOnce},
		Work: func(_ context.Context, task *workerpool.Task[int]) (struct{}, error) {
			t.Done(task.In)
			return struct{}{}, nil
		},
	})}
	p.Host, err = workload.OpenHost(filepath.Join(dir, "jobs"), object.Options{}, p.pool)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := p.Stop(ctx); err != nil {
		return err
	}
	l.Alarms = 0 // those of objects are measured
	return queue.Measure(ctx, p, t, l, r)
}

// Start resumes the pool.
func (p *pool) Start(ctx context.Context) error { return p.pool.Resume(ctx, p.Host) }

// Stop pauses the pool and waits for the running tasks.
func (p *pool) Stop(ctx context.Context) error {
	if err := p.pool.Pause(ctx, p.Host); err != nil {
		return err
	}
	for {
		s, err := p.pool.Stats(ctx, p.Host)
		if err != nil || s.Running == 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

func (p *pool) Enqueue(ctx context.Context, job int) error {
	_, err := p.pool.Enqueue(ctx, p.Host, job)
	return err
}

func (p *pool) Fill(ctx context.Context, n int, _ time.Time) error {
	const each = 10_000
	for done := 0; done < n; done += each {
		items := make([]workerpool.Item[int], min(each, n-done))
		for i := range items {
			items[i].In = -1
		}
		if _, err := p.pool.EnqueueBatch(ctx, p.Host, items); err != nil {
			return err
		}
	}
	return nil
}

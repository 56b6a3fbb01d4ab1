package workload

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/object"
)

// openExecutions opens a host with n jobs and returns when all of them execute.
func openExecutions(dir string, n int) error {
	all := newCountdown(n)
	job := works(all.one)
	return openExecuting(dir, n, all, job, func(h *Host, name string) error {
		_, err := job.Start(context.Background(), h, name, 0)
		return err
	})
}

// openWorkflows is openExecutions with runs of a workflow.
func openWorkflows(dir string, n int) error {
	all := newCountdown(n)
	runs := endless(n, all.one)
	return openExecuting(dir, n, all, runs, func(h *Host, name string) error {
		_, err := runs.Start(context.Background(), h, name, 0)
		return err
	})
}

// openExecuting opens a host, starts n of a kind, and returns when all of them execute.
func openExecuting(dir string, n int, all *countdown, kind object.Definition, start func(h *Host, name string) error) error {
	h, err := OpenHost(dir, object.Options{}, kind)
	if err != nil {
		return err
	}
	if err := measure.Each(context.Background(), 512, n, func(i int) error { return start(h, Name(i)) }); err != nil {
		return err
	}
	<-all.done
	return nil
}

// Recovered opens the host on a store that a child of the role has left with n executions
// open, and returns how long after the call Open returned, and all of them had started
// again, and the costs of each.
func Recovered(ctx context.Context, role, dir string, n int) (open, all time.Duration, costs measure.Costs, err error) {
	meters := measure.Start(nil)
	again := newCountdown(n)
	var kind object.Definition = works(again.one)
	if role == ExecutingRuns {
		kind = endless(n, again.one)
	}
	start := time.Now()
	h, err := OpenHost(dir, object.Options{}, kind)
	if err != nil {
		return 0, 0, nil, err
	}
	open = time.Since(start)
	select {
	case <-again.done:
		all = time.Since(start)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	costs = meters.PerOp(int64(n))
	short, cancel := context.WithCancel(context.Background())
	cancel() // the runs wait for that
	_ = h.Shutdown(short)
	return open, all, costs, err
}

// countdown closes done at the n-th call of one.
type countdown struct {
	left atomic.Int64
	done chan struct{}
}

func newCountdown(n int) *countdown {
	c := &countdown{done: make(chan struct{})}
	c.left.Store(int64(n))
	return c
}

func (c *countdown) one() {
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}

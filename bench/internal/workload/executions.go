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
	h, err := OpenHost(dir, object.Options{}, job)
	if err != nil {
		return err
	}
	err = measure.Each(context.Background(), 512, n, func(i int) error {
		_, err := job.Start(context.Background(), h, Name(i), 0)
		return err
	})
	if err != nil {
		return err
	}
	<-all.done
	return nil
}

// Recovered opens the host on a store that died with n executions open, and
// returns how long after the call Open returned, and all of them had started again,
// and what each of them cost.
func Recovered(ctx context.Context, dir string, n int) (open, all time.Duration, costs measure.Costs, err error) {
	meters := measure.Start(nil)
	again := newCountdown(n)
	start := time.Now()
	h, err := OpenHost(dir, object.Options{}, works(again.one))
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
	cancel() // the works wait for that
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

// Package queue holds the workloads of jobs and of alarms that are scheduled jobs.
// All systems are driven by this code, ours too.
//
// A job counts as done when its handler runs. That its end is recorded comes
// after, in each of the systems.
package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
)

// Callers is how many tasks call a system at a time, in every workload.
const Callers = 64

// Queue is a system that executes jobs. Its handler calls Tracker.Done.
type Queue interface {
	Start(ctx context.Context) error // of the workers
	Stop(ctx context.Context) error  // and wait for those that execute
	Enqueue(ctx context.Context, job int) error
	// Fill enqueues n jobs in the fastest way. If due is not zero, they are to run
	// then.
	Fill(ctx context.Context, n int, due time.Time) error
}

// Tracker learns of the jobs that are done.
type Tracker struct {
	awaited sync.Map // of a job, the channel that is closed when it is done
	batch   atomic.Pointer[batch]
}

// batch is a number of jobs that are awaited together.
type batch struct {
	left atomic.Int64
	all  chan struct{} // closed when none is left
	due  time.Time
	late *measure.Latencies
}

// Done is called by the handler of each job.
func (t *Tracker) Done(job int) {
	if c, ok := t.awaited.LoadAndDelete(job); ok {
		close(c.(chan struct{}))
		return
	}
	b := t.batch.Load()
	if b == nil {
		return
	}
	b.late.Record(time.Since(b.due))
	if b.left.Add(-1) == 0 {
		close(b.all)
	}
}

// expect makes the tracker ready for n jobs.
func (t *Tracker) expect(n int, due time.Time) *batch {
	b := &batch{all: make(chan struct{}), due: due, late: measure.NewLatencies()}
	b.left.Store(int64(n))
	t.batch.Store(b)
	return b
}

func (b *batch) wait(ctx context.Context) error {
	select {
	case <-b.all:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d jobs are not done: %w", b.left.Load(), context.Cause(ctx))
	}
}

// Load is how much is asked of a system.
type Load struct {
	For    time.Duration // of the workload that has no fixed number
	Jobs   int
	Alarms int           // 0: the queue has none
	Lead   time.Duration // from Start until the alarms are due

	Alone int // steps of a workflow that runs alone
	Steps int // steps of each of as many workflows as there are callers
	Runs  int // workflows of three steps at a time
}

// longest bounds a workload that does not end.
const longest = 3 * time.Minute

// Measure runs the workloads and reports their figures.
func Measure(ctx context.Context, q Queue, t *Tracker, l Load, r *figure.Reporter) error {
	for _, w := range []func(context.Context, Queue, *Tracker, Load, *figure.Reporter) error{awaited, through, backlog, alarms} {
		bounded, cancel := context.WithTimeout(ctx, longest)
		err := w(bounded, q, t, l, r)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// awaited is callers that enqueue a job and await it before the next.
func awaited(ctx context.Context, q Queue, t *Tracker, l Load, r *figure.Reporter) error {
	if err := q.Start(ctx); err != nil {
		return err
	}
	run, err := measure.Closed(ctx, Callers, l.For, func(job int) error {
		done := make(chan struct{})
		t.awaited.Store(job, done)
		if err := q.Enqueue(ctx, job); err != nil {
			return err
		}
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err = errors.Join(err, q.Stop(ctx)); err != nil {
		return err
	}
	return r.Add("awaited", Callers, run.PerSecond())
}

// through is the time until many jobs are done, with workers that wait for them.
func through(ctx context.Context, q Queue, t *Tracker, l Load, r *figure.Reporter) error {
	if err := q.Start(ctx); err != nil {
		return err
	}
	start := time.Now()
	b := t.expect(l.Jobs, start)
	err := measure.Each(ctx, Callers, l.Jobs, func(job int) error { return q.Enqueue(ctx, job) })
	if err == nil {
		err = b.wait(ctx)
	}
	elapsed := time.Since(start)
	if err = errors.Join(err, q.Stop(ctx)); err != nil {
		return err
	}
	return r.Add("through", l.Jobs, float64(l.Jobs)/elapsed.Seconds())
}

// backlog is the time from the start of the workers until all are done that were
// queued before.
func backlog(ctx context.Context, q Queue, t *Tracker, l Load, r *figure.Reporter) error {
	if err := q.Fill(ctx, l.Jobs, time.Time{}); err != nil {
		return err
	}
	start := time.Now()
	b := t.expect(l.Jobs, start)
	err := q.Start(ctx)
	if err == nil {
		err = b.wait(ctx)
	}
	elapsed := time.Since(start)
	if err = errors.Join(err, q.Stop(ctx)); err != nil {
		return err
	}
	return r.Add("backlog", l.Jobs, float64(l.Jobs)/elapsed.Seconds())
}

// alarms is scheduled jobs that are due together.
func alarms(ctx context.Context, q Queue, t *Tracker, l Load, r *figure.Reporter) error {
	if l.Alarms == 0 {
		return nil
	}
	if err := q.Start(ctx); err != nil {
		return err
	}
	due := time.Now().Add(l.Lead)
	b := t.expect(l.Alarms, due)
	err := q.Fill(ctx, l.Alarms, due)
	switch {
	case err == nil && time.Now().After(due):
		err = fmt.Errorf("scheduling %d jobs takes longer than %v: give them more time", l.Alarms, l.Lead)
	case err == nil:
		err = b.wait(ctx)
	}
	last := time.Since(due)
	if err = errors.Join(err, q.Stop(ctx)); err != nil {
		return err
	}
	if err := r.Add("alarms", l.Alarms, last.Seconds()); err != nil {
		return err
	}
	return r.Add("late", l.Alarms, b.late.Quantiles().P99/1e6)
}

package workload

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// StepsClass is the class of the runs of Steps.
const StepsClass = "steps"

// Steps is a host with a workflow of empty steps. The input of a run is their number.
type Steps struct {
	*Host
	runs *workflow.Workflow[int, int]
	next atomic.Int64       // the number of the next run
	lat  *measure.Latencies // of the steps; nil: they are not timed
	ctx  context.Context
}

// OpenSteps opens a host with a workflow of empty steps, of which so many runs execute at a
// time.
func OpenSteps(dir string, atOnce int, o object.Options) (*Steps, error) {
	s := &Steps{ctx: context.Background()}
	s.runs = workflow.New[int, int](StepsClass, workflow.Config{
		Concurrency: atOnce, MaxEntries: 1 << 30, MaxBytes: 1 << 40, Retention: jobs.Retention{Completed: time.Hour},
	})
	s.runs.Func(s.steps)
	h, err := OpenHost(dir, o, s.runs)
	s.Host = h
	return s, err
}

// steps is the function of the workflow. It reads the clock for the measurement alone.
func (s *Steps) steps(c *workflow.Context, n int) (int, error) {
	last := time.Now()
	for range n {
		if _, err := workflow.Step(c, "step", func(context.Context) (int, error) { return 0, nil }); err != nil {
			return 0, err
		}
		if s.lat != nil {
			now := time.Now()
			s.lat.Record(now.Sub(last))
			last = now
		}
	}
	return n, nil
}

// Run starts a run of n steps and returns when its output is durable.
func (s *Steps) Run(n int) error { return s.RunAs(strconv.FormatInt(s.next.Add(1), 10), n) }

// RunAs is Run with the id of the run.
func (s *Steps) RunAs(id string, n int) error {
	if _, err := s.runs.Start(s.ctx, s.Host, id, n); err != nil {
		return err
	}
	_, err := s.runs.Wait(s.ctx, s.Host, id)
	return err
}

// Alone runs one run of n steps and returns their latencies, each from one step's return to
// the next one's. The entry of a step is stored before the next one begins.
func (s *Steps) Alone(n int) (measure.Quantiles, error) {
	s.lat = measure.NewLatencies()
	err := s.Run(n)
	return s.lat.Quantiles(), err
}

// endless is a workflow with runs that never leave their first step. started is called at
// the begin of each.
func endless(runs int, started func()) *workflow.Workflow[int, int] {
	w := workflow.New[int, int]("endless", workflow.Config{Concurrency: runs})
	w.Func(func(c *workflow.Context, _ int) (int, error) {
		return workflow.Step(c, "work", func(ctx context.Context) (int, error) {
			started()
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
	})
	return w
}

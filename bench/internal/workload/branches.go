package workload

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// races is the input of a run of Branches: how many branches it begins, and whether each has a
// rival, which sleeps for an hour and loses.
type races struct {
	N     int
	Rival bool
}

// Branches is a host with a workflow that begins branches of one empty step, one after the other.
type Branches struct {
	*Host
	runs *workflow.Workflow[races, int]
	next atomic.Int64 // the number of the next run
}

// OpenBranches opens a host with that workflow.
func OpenBranches(dir string) (*Branches, error) {
	b := &Branches{}
	b.runs = workflow.New[races, int]("branches", workflow.Config{
		MaxEntries: 1 << 30, MaxBytes: 1 << 40, Retention: jobs.Retention{Completed: time.Hour},
	})
	b.runs.Func(func(c *workflow.Context, in races) (int, error) {
		for range in.N {
			if err := branch(c, in.Rival); err != nil {
				return 0, err
			}
		}
		return in.N, nil
	})
	h, err := OpenHost(dir, object.Options{}, b.runs)
	b.Host = h
	return b, err
}

// branch begins a branch and waits for its end, or for that of the first of it and its rival.
func branch(c *workflow.Context, rival bool) error {
	empty := func(c *workflow.Context) (int, error) {
		return workflow.Step(c, "step", func(context.Context) (int, error) { return 0, nil })
	}
	b := workflow.Go(c, "branch", empty)
	if !rival {
		_, err := b.Wait(c)
		return err
	}
	other := workflow.Go(c, "rival", func(c *workflow.Context) (int, error) { return 0, workflow.Sleep(c, time.Hour) })
	_, err := workflow.First(c, b, other)
	return err
}

// Run runs n branches in one run, each with a rival or alone, and returns when the end of the run is
// durable.
func (b *Branches) Run(n int, rival bool) error {
	ctx, id := context.Background(), strconv.FormatInt(b.next.Add(1), 10)
	if _, err := b.runs.Start(ctx, b.Host, id, races{n, rival}); err != nil {
		return err
	}
	_, err := b.runs.Wait(ctx, b.Host, id)
	return err
}

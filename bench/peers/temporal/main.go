// Command temporal measures workflows on a Temporal server. The worker is in this process,
// beside the callers.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/queue"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/steps"
)

// taskQueue is the name of the queue of the worker, and of the workflow.
const taskQueue = "steps"

// runs is a server and a worker as a system of workflows.
type runs struct {
	client client.Client
	timer  steps.Timer
	next   atomic.Int64 // the number of the next run
}

func main() {
	address := flag.String("address", "", "of the server")
	var servers steps.Processes
	flag.Var(&servers, "servers", "process ids of the server, with commas")
	queue.Main(func(ctx context.Context, l queue.Load, r *figure.Reporter) error {
		o := client.Options{HostPort: *address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))}
		if err := register(ctx, o); err != nil {
			return err
		}
		c, err := client.DialContext(ctx, o)
		if err != nil {
			return err
		}
		defer c.Close()
		s := &runs{client: c}
		w := worker.New(c, taskQueue, worker.Options{})
		w.RegisterWorkflowWithOptions(s.workflow, workflow.RegisterOptions{Name: taskQueue})
		w.RegisterActivity(step)
		if err := w.Start(); err != nil {
			return err
		}
		defer w.Stop()
		return steps.Measure(ctx, s, l, servers, r)
	})
}

// register makes the namespace, which a new server does not have.
func register(ctx context.Context, o client.Options) error {
	c, err := client.NewNamespaceClient(o)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Register(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: client.DefaultNamespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
}

// step is an empty step.
func step(context.Context) (int, error) { return 0, nil }

// workflow is the workflow: n activities one after another. It reads the clock for the
// measurement alone.
func (r *runs) workflow(ctx workflow.Context, n int) (int, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	last := time.Now()
	for range n {
		if err := workflow.ExecuteActivity(ctx, step).Get(ctx, nil); err != nil {
			return 0, err
		}
		last = r.timer.Step(last)
	}
	return n, nil
}

// Run implements steps.System. A request that the server does not answer in the time of the
// client is made again, until ctx ends; it finds the run that the first one has started.
func (r *runs) Run(ctx context.Context, n int) error {
	o := client.StartWorkflowOptions{
		ID: strconv.FormatInt(r.next.Add(1), 10), TaskQueue: taskQueue,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}
	for {
		w, err := r.client.ExecuteWorkflow(ctx, o, taskQueue, n)
		if err == nil {
			err = w.Get(ctx, nil)
		}
		var slow *serviceerror.DeadlineExceeded
		if ctx.Err() != nil || !errors.As(err, &slow) && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// Alone implements steps.System.
func (r *runs) Alone(ctx context.Context, n int) (measure.Quantiles, error) {
	r.timer.Begin()
	err := r.Run(ctx, n)
	return r.timer.End(), err
}

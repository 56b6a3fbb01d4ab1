package patterns

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// NewPolls asks a service each hour for each of many accounts. The service bears two
// requests at a time and one new one a second.
func NewPolls(ask func(ctx context.Context, run *continuous.Run[Feed]) error) *continuous.Job[Feed] {
	return continuous.New(continuous.Config[Feed]{
		Name:        "poll",
		Schedule:    jobs.Rate(time.Hour),
		Concurrency: 2,
		StartRate:   object.StartRate{Starts: 1, Per: time.Second},
		Run:         ask,
	})
}

// NewHooks calls the web hooks of customers: sixteen at a time, and for one customer one
// after another, in the order of their submission.
func NewHooks(call func(ctx context.Context, t *workerpool.Task[string]) (int, error)) *workerpool.Pool[string, int] {
	return workerpool.New(workerpool.Config[string, int]{
		Name: "hook", Concurrency: 16, PerKey: 1,
		Work: call,
	})
}

// Notify submits a call for a customer.
func Notify(ctx context.Context, from object.Caller, hooks *workerpool.Pool[string, int], customer, event string) error {
	_, err := hooks.Enqueue(ctx, from, event, workerpool.Key(customer), workerpool.Idempotent(event, 24*time.Hour))
	return err
}

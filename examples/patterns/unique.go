package patterns

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Feed is the state of a job that reads a feed.
type Feed struct{ Reads int }

// Desk takes orders, of which some come twice.
type Desk struct {
	Reports *workerpool.Pool[string, int]
	Mails   *workerpool.Pool[string, int]
	Feeds   *continuous.Job[Feed]
}

// NewDesk defines the jobs of a desk. The functions do the work, for a name.
func NewDesk(report, mail func(ctx context.Context, t *workerpool.Task[string]) (int, error)) *Desk {
	return &Desk{
		Reports: workerpool.New(workerpool.Config[string, int]{Name: "report", Work: report}),
		Mails:   workerpool.New(workerpool.Config[string, int]{Name: "mail", Work: mail}),
		Feeds: continuous.New(continuous.Config[Feed]{
			Name: "feed", Schedule: jobs.Every(time.Hour),
			Run: func(_ context.Context, run *continuous.Run[Feed]) error { run.State.Reads++; return nil },
		}),
	}
}

// Order makes a report for a customer. While one is under way, there is no second.
func (d *Desk) Order(ctx context.Context, from object.Caller, customer string) (workerpool.TaskRef, error) {
	return d.Reports.Enqueue(ctx, from, customer, workerpool.Unique(customer))
}

// Confirm sends a mail for an order. The same order sends no second one within a day,
// also if the first mail is long out.
func (d *Desk) Confirm(ctx context.Context, from object.Caller, order string) (workerpool.TaskRef, error) {
	return d.Mails.Enqueue(ctx, from, order, workerpool.Idempotent(order, 24*time.Hour))
}

// Follow reads a feed each hour, as one job however many follow it.
func (d *Desk) Follow(ctx context.Context, from object.Caller, url string) (first bool, err error) {
	started, err := d.Feeds.Start(ctx, from, url, Feed{})
	return started.Created, err
}

package patterns

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// Charge takes money from a card. A service that is given a key again takes nothing.
type Charge func(ctx context.Context, key string, cents int) error

// Billing is three jobs that take money: each month, for a burst of small sums, and for
// an order. Each has a key that is the same in every repeat, and in no other charge.
type Billing struct {
	Monthly *continuous.Job[int]
	Metered *debounce.Job[int, int]
	Orders  *workerpool.Pool[int, int]
}

// NewBilling defines the jobs, over a service that charges.
func NewBilling(charge Charge) *Billing {
	return &Billing{
		Monthly: continuous.New(continuous.Config[int]{
			Name: "monthly", Schedule: jobs.Cron("0 0 9 1 * *", "UTC"), StartLater: true,
			Retry: jobs.Retry{MaxAttempts: 5},
			Run: func(ctx context.Context, run *continuous.Run[int]) error {
				return charge(ctx, run.Key, run.State)
			},
		}),
		Metered: debounce.New(debounce.Config[int, int]{
			Name: "metered", Quiet: time.Minute,
			Retry:  jobs.Retry{MaxAttempts: 5},
			Reduce: func(sum int, _ bool, cents int) (int, error) { return sum + cents, nil },
			Flush: func(ctx context.Context, f *debounce.Flush[int, int]) error {
				return charge(ctx, f.Key, f.State)
			},
		}),
		Orders: workerpool.New(workerpool.Config[int, int]{
			Name: "order",
			Work: func(ctx context.Context, t *workerpool.Task[int]) (int, error) {
				return t.In, charge(ctx, t.OutsideKey, t.In)
			},
		}),
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// account is money of a customer.
type account struct {
	st    *object.State
	cents int
}

// Deposited is the payload of the event of a deposit.
type Deposited struct {
	Cents   int `json:"cents"`
	Balance int `json:"balance"`
}

// Accounts is a plain class: an object for each customer.
var (
	Accounts = object.Define("account", func(ctx context.Context, st *object.State) (*account, error) {
		a := &account{st: st}
		_, err := st.Storage().GetInto(ctx, "cents", &a.cents)
		return a, err
	})
	Deposit = object.Handle(Accounts, "deposit", func(a *account, ctx context.Context, cents int) (int, error) {
		if cents <= 0 {
			return 0, errors.New("a deposit must be more than nothing")
		}
		a.cents += cents
		return a.cents, errors.Join(a.st.Storage().Put(ctx, "cents", a.cents), a.st.Emit(ctx, "deposited", Deposited{cents, a.cents}))
	})
	Balance = object.Handle(Accounts, "balance", func(a *account, _ context.Context, _ struct{}) (int, error) {
		return a.cents, nil
	})
)

// Rate is the price of a currency, asked for every two seconds.
type Rate struct {
	Cents int `json:"cents"`
}

// Rates is a continuous job.
var Rates = continuous.New(continuous.Config[Rate]{
	Name:     "rate",
	Schedule: jobs.Every(2 * time.Second),
	Run: func(_ context.Context, run *continuous.Run[Rate]) error {
		run.State.Cents = 100 + (run.State.Cents+7)%20
		return nil
	},
})

// Change is a change of a page of a document.
type Change struct {
	Page int `json:"page"`
}

// Index is a debounce: it brings many changes of a document into the search index at once.
var Index = debounce.New(debounce.Config[Change, struct{}]{
	Name:    "index",
	Quiet:   time.Second,
	MaxWait: 5 * time.Second,
	Flush:   func(context.Context, *debounce.Flush[Change, struct{}]) error { return nil },
})

// Picture is to be made smaller.
type Picture struct {
	Name string `json:"name"`
	Bad  bool   `json:"bad,omitempty"`
}

// mended says that bad pictures are made smaller too.
var mended bool

// Thumbs is a pool. Bad pictures become dead letters.
var Thumbs = workerpool.New(workerpool.Config[Picture, string]{
	Name:        "thumb",
	Concurrency: 4,
	Retention:   jobs.Retention{Completed: 10 * time.Minute, Cancelled: 10 * time.Minute},
	Retry:       jobs.Retry{MaxAttempts: 2},
	Work: func(_ context.Context, t *workerpool.Task[Picture]) (string, error) {
		if t.In.Bad && !mended {
			return "", fmt.Errorf("%s is no picture", t.In.Name)
		}
		return "small-" + t.In.Name, nil
	},
})

// Prints is a pool without work of its own: programs outside claim its tasks over HTTP.
var Prints = workerpool.New(workerpool.Config[string, string]{Name: "print"})

// Order is something that a customer buys.
type Order struct {
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

// dear orders wait for an approval.
const dear = 5000

// Approved is the signal that a dear order waits for.
var Approved = workflow.NewSignal[bool]("approved")

// Orders is a workflow.
var Orders = workflow.New[Order, string]("order", workflow.Config{
	Signals:   workflow.Signals{Approved},
	Retention: jobs.Retention{Completed: time.Hour, Cancelled: time.Hour},
})

func init() { Orders.Func(buy) }

func buy(ctx *workflow.Context, o Order) (string, error) {
	if _, err := workflow.Step(ctx, "reserve", func(context.Context) (bool, error) { return true, nil }); err != nil {
		return "", err
	}
	if o.Cents >= dear {
		if yes, err := Approved.Wait(ctx, time.Hour); err != nil || !yes {
			return "refused", err
		}
	}
	if err := workflow.Sleep(ctx, time.Second); err != nil {
		return "", err
	}
	return workflow.Step(ctx, "ship", func(context.Context) (string, error) { return "shipped to " + o.Customer, nil })
}

// definitions are those that the host is opened with; described are those with verbs.
func definitions() []object.Definition {
	return []object.Definition{Accounts, Rates, Index, Thumbs, Prints, Orders}
}

func described() []verbs.Described { return []verbs.Described{Rates, Index, Thumbs, Prints, Orders} }

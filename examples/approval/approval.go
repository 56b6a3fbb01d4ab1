package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// Request asks for money.
type Request struct {
	From string
	Euro int
}

var (
	Decided  = workflow.NewSignal[bool]("decided") // the boss says yes or no
	Progress = workflow.NewVar[string]("progress") // how far a request has come
	patience = 365 * 24 * time.Hour                // for the boss
	settings = workflow.Config{Signals: workflow.Signals{Decided}}
)

// Post sends a mail. The other side knows a key that it has seen before, and sends no second
// mail then.
type Post func(ctx context.Context, key, text string) error

// NewRequests makes the workflow of requests, over a post.
func NewRequests(post Post) *workflow.Workflow[Request, string] {
	mail := func(text string) func(ctx context.Context) error {
		return func(ctx context.Context) error { return post(ctx, workflow.Key(ctx), text) }
	}
	send := func(ctx *workflow.Context, name, text string) error {
		_, err := workflow.Step(ctx, name, func(ctx context.Context) (bool, error) { return true, mail(text)(ctx) })
		return err
	}
	requests := workflow.New[Request, string]("request", settings)
	requests.Func(func(ctx *workflow.Context, r Request) (string, error) {
		if err := send(ctx, "ask", fmt.Sprintf("May %s have %d euro?", r.From, r.Euro)); err != nil {
			return "", err
		}
		workflow.Undo(ctx, "never mind", mail("Never mind: "+r.From+" needs no money."))
		Progress.Set(ctx, "waits for the boss")
		yes, err := Decided.Wait(ctx, patience) // a year on disk alone: no goroutine, no memory
		switch {
		case errors.Is(err, workflow.ErrTimeout):
			return "refused, because the boss said nothing", nil
		case err != nil:
			return "", err // cancelled: the undo runs
		case !yes:
			return "refused", nil
		}
		Progress.Set(ctx, "is paid")
		return "paid", send(ctx, "pay", fmt.Sprintf("Pay %d euro to %s.", r.Euro, r.From))
	})
	return requests
}

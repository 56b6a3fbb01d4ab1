package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// do carries out one command. arg is the last word of it.
func do(ctx context.Context, host *object.Host, requests *workflow.Workflow[Request, string], verb, id, arg string) error {
	switch verb {
	case "ask":
		euro, err := strconv.Atoi(arg)
		if err != nil {
			return fmt.Errorf("EURO must be a number: %q", arg)
		}
		started, err := requests.Start(ctx, host, id, Request{id, euro})
		if err == nil && !started.Created {
			fmt.Println("There is such a request already.")
		}
		return errors.Join(err, show(ctx, host, requests, id))
	case "yes", "no":
		if err := Decided.Send(ctx, host, requests, id, verb == "yes"); err != nil {
			return err
		}
	case "cancel":
		if err := requests.Cancel(ctx, host, id, "not needed any more"); err != nil {
			return err
		}
	case "show":
		return show(ctx, host, requests, id)
	default:
		return fmt.Errorf("unknown command %q (-h helps)", verb)
	}
	outcome, err := requests.Wait(ctx, host, id)
	if errors.Is(err, workflow.ErrCancelled) {
		outcome, err = "cancelled", nil
	}
	fmt.Printf("The request is %s.\n", outcome)
	return err
}

// show prints how far a request has come, once it executes no more.
func show(ctx context.Context, host *object.Host, requests *workflow.Workflow[Request, string], id string) error {
	for {
		st, err := requests.Status(ctx, host, id)
		if err != nil {
			return err
		}
		if st.Meta.Status.Ended() || len(st.Waits) > 0 {
			progress, _, err := Progress.Get(ctx, host, requests, id)
			fmt.Printf("%s: the request %s.\n", st.Meta.Status, progress)
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

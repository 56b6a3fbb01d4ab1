package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// Loans had no check at first. Runs that were beyond its place go on without it.
var Loans = workflow.New[int, string]("loan", workflow.Config{Retry: jobs.Retry{MaxAttempts: 1}})

func init() {
	Loans.Func(func(ctx *workflow.Context, euro int) (string, error) {
		if workflow.Patched(ctx, "check") {
			if _, err := workflow.Step(ctx, "check", func(context.Context) (bool, error) {
				if bankClosed {
					return false, errors.New("the bank is closed")
				}
				return true, nil
			}); err != nil {
				return "", err
			}
		}
		return workflow.Step(ctx, "pay", func(context.Context) (string, error) { return fmt.Sprint("paid ", euro), nil })
	})
}

var bankClosed bool

// openLoans opens a host in a directory of its own; a program names one that stays.
func openLoans() (host *object.Host, end func()) {
	dir, err := os.MkdirTemp("", "loans")
	if err != nil {
		log.Fatal(err)
	}
	host, err = object.Open(object.Options{Dir: dir}, Loans)
	if err != nil {
		log.Fatal(err)
	}
	return host, func() {
		if err := host.Shutdown(context.Background()); err != nil {
			log.Fatal(err)
		}
		os.RemoveAll(dir)
	}
}

// The history of a run tells that it has the change. When List with WithoutPatch yields no
// run any more, the condition may go.
func ExamplePatched() {
	ctx := context.Background()
	host, end := openLoans()
	defer end()
	if _, err := Loans.Start(ctx, host, "7", 100); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Loans.Wait(ctx, host, "7"))
	entries, err := Loans.History(ctx, host, "7", 0, 0)
	for _, e := range entries {
		fmt.Println(e.Kind, e.Name)
	}
	fmt.Println(err)
	for run, err := range Loans.List(ctx, host, workflow.ListOptions{WithoutPatch: "check"}) {
		fmt.Println("without the check:", run.Meta.ID, err)
	}
	// Output:
	// paid 100 <nil>
	// patch check
	// step check
	// step pay
	// <nil>
}

// List finds the failed runs by their label, and Retry tries the last step of each again.
func ExampleWorkflow_Retry() {
	ctx := context.Background()
	host, end := openLoans()
	defer end()
	bankClosed = true
	if _, err := Loans.Start(ctx, host, "8", 100); err != nil {
		log.Fatal(err)
	}
	_, err := Loans.Wait(ctx, host, "8")
	fmt.Println(err)
	bankClosed = false
	for run, err := range Loans.List(ctx, host, workflow.ListOptions{Label: jobs.Failed}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("again:", run.Meta.ID, Loans.Retry(ctx, host, run.Meta.ID))
	}
	fmt.Println(Loans.Wait(ctx, host, "8"))
	// Output:
	// workflow: failed: loan/8: step "check": the bank is closed
	// again: 8 <nil>
	// paid 100 <nil>
}

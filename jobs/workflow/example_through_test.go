package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// Bank is the breaker before a bank, and Payments are behind it.
var (
	Bank     = breaker.New(breaker.Config{Name: "bank", Failures: 1, OpenFor: 20 * time.Millisecond})
	Payments = workflow.New[int, string]("payment", workflow.Config{})
	bankIsUp atomic.Bool
)

func init() {
	Payments.Func(func(ctx *workflow.Context, cents int) (string, error) {
		return workflow.Step(ctx, "pay", func(context.Context) (string, error) {
			if !bankIsUp.Load() {
				return "", errors.New("the bank is down")
			}
			return fmt.Sprint("paid ", cents), nil
		}, workflow.Through(Bank, "eu"), workflow.Retry(jobs.Retry{MaxAttempts: 1}))
	})
}

// openBank opens a host in a directory of its own; a program names one that stays.
func openBank() (host *object.Host, end func()) {
	dir, err := os.MkdirTemp("", "bank")
	if err != nil {
		log.Fatal(err)
	}
	host, err = object.Open(object.Options{Dir: dir}, Payments, Bank)
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

// The first payment finds the bank down, and the breaker opens. The second waits until it may ask
// again, which is no attempt of its step.
func ExampleThrough() {
	ctx := context.Background()
	host, end := openBank()
	defer end()
	bankIsUp.Store(false)
	if _, err := Payments.Start(ctx, host, "1", 100); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Payments.Wait(ctx, host, "1"))
	bankIsUp.Store(true)
	if _, err := Payments.Start(ctx, host, "2", 200); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Payments.Wait(ctx, host, "2"))
	// Output:
	//  workflow: failed: payment/1: step "pay": the bank is down
	// paid 200 <nil>
}

// RetryAll lets the failed runs go on, a hundred in a second.
func ExampleWorkflow_RetryAll() {
	ctx := context.Background()
	host, end := openBank()
	defer end()
	bankIsUp.Store(false)
	if _, err := Payments.Start(ctx, host, "1", 100); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Payments.Wait(ctx, host, "1"))
	bankIsUp.Store(true)
	fmt.Println(Payments.RetryAll(ctx, host, nil))
	fmt.Println(Payments.Wait(ctx, host, "1"))
	// Output:
	//  workflow: failed: payment/1: step "pay": the bank is down
	// 1 <nil>
	// paid 100 <nil>
}

package workflowtest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/jobs/workflow/workflowtest"
)

// Subscriptions welcomes a customer, and charges after a month of trial, unless it was left.
var (
	Left          = workflow.NewSignal[string]("left")
	Subscriptions = workflow.New[string, string]("subscription", workflow.Config{Signals: workflow.Signals{Left}})
)

func init() {
	Subscriptions.Func(func(ctx *workflow.Context, customer string) (string, error) {
		if _, err := workflow.Step(ctx, "welcome", sendWelcome); err != nil {
			return "", err
		}
		if why, err := Left.Wait(ctx, 30*24*time.Hour); err == nil {
			return "left: " + why, nil
		}
		return workflow.Step(ctx, "charge", chargeCard)
	})
}

// sendWelcome and chargeCard call services, which a unit test does not want.
func sendWelcome(context.Context) (string, error) { return "sent", fmt.Errorf("no network") }
func chargeCard(context.Context) (string, error)  { return "charged", fmt.Errorf("no network") }

// testSubscription is the test: give it a name that begins with Test. A month takes no
// time, and the process dies at each point where that can matter.
func testSubscription(t testing.TB) {
	welcome := workflowtest.Step("welcome", func(context.Context) (string, error) { return "sent", nil })
	for _, last := range []workflowtest.Option{
		workflowtest.Signal(24*time.Hour, Left, "too dear"),
		workflowtest.Step("charge", func(context.Context) (string, error) { return "charged", nil }),
	} {
		fmt.Println(workflowtest.Run(t, Subscriptions, "anna", welcome, last))
	}
}

// Run is a unit test of a workflow in one call.
func ExampleRun() {
	testSubscription(&testing.T{}) // go test calls it in a test of yours
	// Output:
	// left: too dear <nil>
	// charged <nil>
}

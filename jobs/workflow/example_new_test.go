package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// Order is the input of a run, and Receipt its output.
type (
	Order   struct{ Item string }
	Receipt struct{ Parcel string }
)

// Orders buys, packs and ships. A function that is killed anywhere goes on in the next
// process, and runs no step again that is recorded.
var Orders = workflow.New[Order, Receipt]("order", workflow.Config{})

func init() { Orders.Func(buy) }

func buy(ctx *workflow.Context, o Order) (Receipt, error) {
	_, err := workflow.Step(ctx, "charge", func(ctx context.Context) (string, error) {
		return charge(ctx, workflow.Key(ctx), o.Item) // the same key each time, so that the bank knows a repeat
	}, workflow.Retry(jobs.Retry{MaxAttempts: 10}), workflow.Timeout(time.Minute))
	if err != nil {
		return Receipt{}, err
	}
	workflow.Undo(ctx, "refund", func(ctx context.Context) error {
		fmt.Println("refunded:", o.Item)
		return nil
	})
	if err := workflow.Sleep(ctx, 10*time.Millisecond); err != nil { // or years
		return Receipt{}, err
	}
	return workflow.Step(ctx, "ship", func(context.Context) (Receipt, error) {
		if o.Item == "elephant" {
			return Receipt{}, jobs.Permanent(errors.New("too heavy"))
		}
		return Receipt{"parcel with a " + o.Item}, nil
	})
}

// charge stands for a request to a bank.
func charge(_ context.Context, key, item string) (string, error) { return "charged", nil }

// openOrders opens a host in a directory of its own; a program names one that stays.
func openOrders() (host *object.Host, end func()) {
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		log.Fatal(err)
	}
	host, err = object.Open(object.Options{Dir: dir}, Orders)
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

// A workflow is made once, at package level, and started with an id.
func ExampleNew() {
	ctx := context.Background()
	host, end := openOrders()
	defer end()
	for _, item := range []string{"lamp", "lamp"} { // a repeat changes nothing
		started, err := Orders.Start(ctx, host, "order-7", Order{item})
		fmt.Println("created:", started.Created, err)
	}
	receipt, err := Orders.Wait(ctx, host, "order-7")
	fmt.Println(receipt.Parcel, err)
	// Output:
	// created: true <nil>
	// created: false <nil>
	// parcel with a lamp <nil>
}

// When the function fails, the registered undos run, last first.
func ExampleUndo() {
	ctx := context.Background()
	host, end := openOrders()
	defer end()
	if _, err := Orders.Start(ctx, host, "order-8", Order{"elephant"}); err != nil {
		log.Fatal(err)
	}
	_, err := Orders.Wait(ctx, host, "order-8")
	fmt.Println(errors.Is(err, workflow.ErrFailed), err)
	// Output:
	// refunded: elephant
	// true workflow: failed: order/order-8: step "ship": too heavy
}

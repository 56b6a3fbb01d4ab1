package workflow_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// Bids waits for the answers of two shops, and for a third one until a time.
var (
	Offered = workflow.NewSignal[string]("offered")
	Bids    = workflow.New[Sale, string]("bid", workflow.Config{Signals: workflow.Signals{Offered}})
)

// Sale is an input: a thing to sell, and how long an offer is waited for.
type Sale struct {
	Item   string
	Within time.Duration
}

func init() {
	Bids.Func(func(ctx *workflow.Context, sale Sale) (string, error) {
		ask := func(shop string) func(ctx *workflow.Context) (int, error) {
			return func(ctx *workflow.Context) (int, error) {
				return workflow.Step(ctx, "ask "+shop, func(context.Context) (int, error) { return len(shop + sale.Item), nil })
			}
		}
		// Both run while the function goes on.
		corner, mall := workflow.Go(ctx, "corner", ask("corner")), workflow.Go(ctx, "mall", ask("mall"))

		answer := workflow.Go(ctx, "answer", func(ctx *workflow.Context) (string, error) { return Offered.Wait(ctx, 0) })
		late := workflow.Go(ctx, "late", func(ctx *workflow.Context) (int, error) { return 0, workflow.Sleep(ctx, sale.Within) })
		first, err := workflow.First(ctx, answer, late)
		if err != nil {
			return "", err
		}
		a, err := corner.Wait(ctx)
		if err != nil {
			return "", err
		}
		b, err := mall.Wait(ctx)
		if err != nil || first == 1 {
			return fmt.Sprintf("%d or %d, and no answer", a, b), err
		}
		c, err := answer.Wait(ctx)
		return fmt.Sprintf("%d or %d, and %s", a, b, c), err
	})
}

// openBids opens a host in a directory of its own; a program names one that stays.
func openBids() (host *object.Host, end func()) {
	dir, err := os.MkdirTemp("", "bids")
	if err != nil {
		log.Fatal(err)
	}
	host, err = object.Open(object.Options{Dir: dir}, Bids)
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

// Branches run beside the function, which waits for each where it needs the result.
func ExampleGo() {
	ctx := context.Background()
	host, end := openBids()
	defer end()
	if _, err := Bids.Start(ctx, host, "1", Sale{"lamp", time.Hour}); err != nil {
		log.Fatal(err)
	}
	if err := Offered.Send(ctx, host, Bids, "1", "7"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Bids.Wait(ctx, host, "1"))
	// Output: 10 or 8, and 7 <nil>
}

// The sleep wins, because no signal comes. The other branch is cancelled in the same commit.
func ExampleFirst() {
	ctx := context.Background()
	host, end := openBids()
	defer end()
	if _, err := Bids.Start(ctx, host, "1", Sale{"lamp", time.Millisecond}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Bids.Wait(ctx, host, "1"))
	// Output: 10 or 8, and no answer <nil>
}

// A run that has ended begins anew with another input.
func ExampleWorkflow_Restart() {
	ctx := context.Background()
	host, end := openBids()
	defer end()
	if _, err := Bids.Start(ctx, host, "1", Sale{"lamp", time.Millisecond}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Bids.Wait(ctx, host, "1"))
	if err := Bids.Restart(ctx, host, "1", Sale{"carpet", time.Millisecond}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Bids.Wait(ctx, host, "1"))
	// Output:
	// 10 or 8, and no answer <nil>
	// 12 or 10, and no answer <nil>
}

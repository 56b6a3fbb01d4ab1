package workflow_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// Sums adds up numbers that come as signals, for ever: until a zero. After each hundred
// it begins anew with the sum so far, so that its history stays short.
var (
	Number = workflow.NewSignal[int]("number")
	Sums   = workflow.New[int, int]("sum", workflow.Config{Signals: workflow.Signals{Number}})
)

func init() {
	Sums.Func(func(ctx *workflow.Context, sum int) (int, error) {
		for range 100 { // or: for !ctx.NearFull()
			n, err := Number.Wait(ctx, 0)
			if err != nil || n == 0 {
				return sum, err
			}
			sum += n
		}
		return Sums.ContinueAs(ctx, sum)
	})
}

// openSums opens a host in a directory of its own; a program names one that stays.
func openSums() (host *object.Host, end func()) {
	dir, err := os.MkdirTemp("", "sums")
	if err != nil {
		log.Fatal(err)
	}
	host, err = object.Open(object.Options{Dir: dir}, Sums)
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

// ContinueAs keeps the id, the variables and the signals that wait.
func ExampleWorkflow_ContinueAs() {
	ctx := context.Background()
	host, end := openSums()
	defer end()
	if _, err := Sums.Start(ctx, host, "s", 0); err != nil {
		log.Fatal(err)
	}
	for i := range 251 {
		if err := Number.Send(ctx, host, Sums, "s", 250-i); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(Sums.Wait(ctx, host, "s"))
	st, err := Sums.Status(ctx, host, "s")
	fmt.Println("generation", st.Generation, "with", st.Entries, "entries", err)
	// Output:
	// 31375 <nil>
	// generation 2 with 51 entries <nil>
}

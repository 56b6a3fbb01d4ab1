package workflowrow_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/jobs/workflow/workflowrow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A tool prints the rows of a run.
func ExampleText() {
	orders := workflow.New[int, string]("order", workflow.Config{})
	orders.Func(func(ctx *workflow.Context, cents int) (string, error) {
		return workflow.Step(ctx, "pay", func(context.Context) (string, error) { return fmt.Sprintf("paid %d", cents), nil })
	})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, orders)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := orders.Start(ctx, host, "1", 499); err != nil {
		log.Fatal(err)
	}
	if _, err := orders.Wait(ctx, host, "1"); err != nil {
		log.Fatal(err)
	}
	stored, err := host.Keys(ctx, orders.ID("1"), object.KeysOptions{Values: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range stored.Keys {
		if name, text, ok := workflowrow.Text(row.Key, row.Value, time.Time{}); ok {
			fmt.Println(name, "is", text)
		}
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: entry 0 step "pay" is "paid 499"
}

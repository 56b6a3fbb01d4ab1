package engine_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A tool finds the open executions of an object among its rows.
func ExampleDecodeExecution() {
	finish := make(chan struct{})
	job := continuous.New(continuous.Config[int]{
		Name: "import",
		Run:  func(context.Context, *continuous.Run[int]) error { <-finish; return nil },
	})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, job)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := job.Start(ctx, host, "orders", 0); err != nil {
		log.Fatal(err)
	}
	stored, err := host.Keys(ctx, job.ID("orders"), object.KeysOptions{Values: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range stored.Keys {
		if x, err := engine.DecodeExecution(row.Key, row.Value); err == nil {
			fmt.Println("run", x.Run.Number, "attempt", x.Run.Attempt, "lease", x.Lease.Sub(x.Began))
		}
	}
	close(finish)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: run 1 attempt 1 lease 30s
}

package workerpool_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// One report of a customer is made at a time: to ask again meanwhile returns the task
// that is under way, and to ask afterwards makes another.
func ExampleUnique() {
	ctx := context.Background()
	reports := workerpool.New(workerpool.Config[string, string]{Name: "reports"})
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, reports)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Shutdown(ctx)
	for range 2 {
		task, err := reports.Enqueue(ctx, h, "alice", workerpool.Unique("report of alice"))
		fmt.Println(task.ID, task.Repeated, err)
	}
	claims, err := reports.Claim(ctx, h, 1, 0)
	if err != nil {
		log.Fatal(err)
	}
	if err := reports.Ack(ctx, h, claims[0].Lease, "42 pages"); err != nil {
		log.Fatal(err)
	}
	task, err := reports.Enqueue(ctx, h, "alice", workerpool.Unique("report of alice"))
	fmt.Println(task.ID, task.Repeated, err)
	// Output:
	// 0-1 false <nil>
	// 0-1 true <nil>
	// 0-2 false <nil>
}

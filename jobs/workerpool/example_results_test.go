package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Parcels are weighed and then sent, but there is no van.
var Parcels = workerpool.New(workerpool.Config[string, int]{
	Name:   "parcels",
	Phases: []string{"weigh", "address", "send"},
	Retry:  jobs.Retry{MaxAttempts: 1},
	Work: func(ctx context.Context, t *workerpool.Task[string]) (int, error) {
		if _, err := workerpool.Phase(ctx, t, "weigh", func(context.Context) (int, error) { return 250, nil }); err != nil {
			return 0, err
		}
		if _, err := workerpool.Phase(ctx, t, "address", func(context.Context) (string, error) { return "Main Street", nil }); err != nil {
			return 0, err
		}
		return workerpool.Phase(ctx, t, "send", func(context.Context) (int, error) { return 0, errors.New("no van") })
	},
})

// An operator looks at the stored results of a task that has failed for good, without their types.
func ExamplePool_PhaseResults() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "parcels") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Parcels)
	if err != nil {
		log.Fatal(err)
	}
	task, err := Parcels.Enqueue(ctx, host, "clock")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := Parcels.Wait(ctx, host, task.ID); err != nil {
		fmt.Println(errors.Is(err, workerpool.ErrFailed))
	}
	results, err := Parcels.PhaseResults(ctx, host, task.ID)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Printf("%s: %s\n", r.Name, r.Raw)
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// true
	// weigh: 250
	// address: "Main Street"
}

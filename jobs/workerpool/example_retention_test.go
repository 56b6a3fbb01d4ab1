package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A dead letter is told once nothing has happened to it for a while, and removed later. A program would have days in
// place of milliseconds, and would pass r as the caller and r.Key as the idempotency key to other objects.
func ExampleConfig_retention() {
	retired := make(chan string)
	letters := workerpool.New(workerpool.Config[string, string]{
		Name: "letters",
		Work: func(context.Context, *workerpool.Task[string]) (string, error) {
			return "", jobs.Permanent(errors.New("no such address"))
		},
		Retention: jobs.Retention{
			StaleAfter: 5 * time.Millisecond,
			Failed:     10 * time.Millisecond,
			OnStale: func(_ context.Context, r *jobs.Retired) error {
				retired <- fmt.Sprintf("task %s is %s and stale: %s", r.ID, r.Status, r.Error)
				return nil
			},
			OnDelete: func(_ context.Context, r *jobs.Retired) error {
				retired <- fmt.Sprintf("task %s is removed, key %t", r.ID, r.Key != "")
				return nil
			},
		},
	})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, letters)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := letters.Enqueue(ctx, host, "to nobody"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-retired)
	fmt.Println(<-retired)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// task 0-1 is failed and stale: no such address
	// task 0-1 is removed, key true
}

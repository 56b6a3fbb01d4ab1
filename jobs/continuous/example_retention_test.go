package continuous_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
)

// retired gets the messages of the hooks. A program would send a mail, or store the last words of
// the job in another object, with r as the caller and r.Key as the idempotency key.
var retired = make(chan string, 10)

// Doomed has jobs that fail for good. A program would have days in place of milliseconds.
var Doomed = continuous.New(continuous.Config[struct{}]{
	Name: "doomed", Exhausted: jobs.Fail,
	Run: func(context.Context, *continuous.Run[struct{}]) error { return fmt.Errorf("no such address") },
	Retention: jobs.Retention{
		Failed:     10 * time.Millisecond,
		StaleAfter: 5 * time.Millisecond,
		OnStale: func(_ context.Context, r *jobs.Retired) error {
			retired <- fmt.Sprintf("%s is %s and stale: %s", r.ID, r.Status, r.Error)
			return nil
		},
		OnDelete: func(_ context.Context, r *jobs.Retired) error {
			retired <- fmt.Sprintf("%s is removed, key %t", r.ID, r.Key != "")
			return nil
		},
	},
})

// A failed job is told once nothing has happened to it for a while, and removed later.
func ExampleConfig_retention() {
	host, done := open(Doomed)
	defer done()
	if _, err := Doomed.Start(context.Background(), host, "north", struct{}{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-retired)
	fmt.Println(<-retired)
	// Output:
	// north is failed and stale: no such address
	// north is removed, key true
}

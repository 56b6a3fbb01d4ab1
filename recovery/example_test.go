package recovery_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
)

// beats is a job of these examples.
var beats = continuous.New(continuous.Config[int]{
	Name: "beat", Schedule: jobs.Every(time.Hour), StartLater: true,
	Run: func(context.Context, *continuous.Run[int]) error { return nil },
})

// withHost runs an example on a host in a new directory. A program names one that stays.
func withHost(example func(ctx context.Context, h *object.Host)) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	h, err := object.Open(object.Options{Dir: dir}, beats)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	example(ctx, h)
	if err := h.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
}

// Scrub looks at all objects while the host runs, and mends the jobs that it can.
func ExampleScrub() {
	withHost(func(ctx context.Context, h *object.Host) {
		if _, err := beats.Start(ctx, h, "a", 0); err != nil {
			log.Fatal(err)
		}
		seen, err := recovery.Scrub(ctx, h, recovery.ScrubOptions{Repair: true})
		fmt.Println(seen.Objects, len(seen.Findings), err)
	})
	// Output: 1 0 <nil>
}

// Recovered is the report of the executions that were cut off before the host opened, and
// of their recovery.
func ExampleRecovered() {
	withHost(func(_ context.Context, h *object.Host) {
		fmt.Println(recovery.Recovered(h).Total)
	})
	// Output: 0
}

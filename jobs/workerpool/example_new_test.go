package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Picture is the input of a task.
type Picture struct {
	File  string
	Width int
}

// Thumbnails makes pictures smaller, four at a time. A task that fails is tried again,
// and after five attempts it is a dead letter. One that a crash cuts off runs again.
var Thumbnails = workerpool.New(workerpool.Config[Picture, string]{
	Name:        "thumbnails",
	Concurrency: 4,
	Timeout:     time.Minute,
	Retry:       jobs.Retry{MaxAttempts: 5, Backoff: jobs.Exponential(time.Second, time.Minute)},
	Work: func(ctx context.Context, t *workerpool.Task[Picture]) (string, error) {
		if t.In.Width <= 0 {
			return "", jobs.Permanent(errors.New("width must be positive")) // to try again is of no use
		}
		return fmt.Sprintf("%s.%d", t.In.File, t.In.Width), nil // a program would write the file here
	},
})

// A pool is defined once, at package level. A task is stored when Enqueue returns.
func ExampleNew() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "thumbnails") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Thumbnails)
	if err != nil {
		log.Fatal(err)
	}

	for _, p := range []Picture{{"cat.png", 100}, {"dog.png", 0}} {
		task, err := Thumbnails.Enqueue(ctx, host, p)
		if err != nil {
			log.Fatal(err)
		}
		made, err := Thumbnails.Wait(ctx, host, task.ID) // only if the result is needed
		switch {
		case errors.Is(err, workerpool.ErrFailed):
			fmt.Println(err)
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println("made", made)
		}
	}

	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// made cat.png.100
	// thumbnails: task 0-2: workerpool: task is dead: width must be positive
}

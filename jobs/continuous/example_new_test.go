package continuous_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// Cursor is the state of a job: how far a feed was read. It is stored with the end of
// each run that succeeds.
type Cursor struct{ Read int }

// Polls reads a feed every half hour. A run that fails is tried again, and one that a
// crash cuts off is found by the next process.
var Polls = continuous.New(continuous.Config[Cursor]{
	Name:     "poll",
	Schedule: jobs.Every(30 * time.Minute),
	Retry:    jobs.Retry{MaxAttempts: 5, Backoff: jobs.Exponential(time.Second, time.Minute)},
	Timeout:  time.Minute,
	Run: func(ctx context.Context, run *continuous.Run[Cursor]) error {
		items, err := fetch(ctx, run.ID, run.State.Read)
		if err != nil {
			return err // the state stays as it was
		}
		run.State.Read += len(items)
		return nil
	},
})

// fetch stands for a request that gets the items of a feed after the first few.
func fetch(_ context.Context, feed string, after int) ([]string, error) {
	return []string{feed + " item 1", feed + " item 2"}[after:], nil
}

// A job is defined once, at package level, and started for each id: here a feed.
func ExampleNew() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "polls") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Polls)
	if err != nil {
		log.Fatal(err)
	}

	for range 2 { // a program starts its jobs each time that it begins; a job that is there stays
		started, err := Polls.Start(ctx, host, "news", Cursor{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("created:", started.Created)
	}
	for e, err := range host.Watch(ctx, Polls.ID("news"), 0) { // the first run begins at once
		if err != nil {
			log.Fatal(err)
		}
		if e.Kind == jobs.EventSuccess {
			break
		}
	}
	state, err := Polls.State(ctx, host, "news")
	fmt.Println("read:", state.Read, err)

	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// created: true
	// created: false
	// read: 2 <nil>
}

package debounce_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// maxPosts is how often a flush is tried.
const maxPosts = 2

// aside gets the events that could not be sent. A program would give them to another
// object, with f as the caller and f.Key as the idempotency key.
var aside = make(chan []string, 10)

// Posts sends events to a server. It puts aside those that the server does not take.
var Posts = debounce.New(debounce.Config[string, struct{}]{
	Name:      "post",
	Quiet:     time.Hour,
	MaxEvents: 2,
	Retry:     jobs.Retry{MaxAttempts: maxPosts, Backoff: jobs.Constant(time.Millisecond)},
	Exhausted: debounce.Drop,
	Flush: func(ctx context.Context, f *debounce.Flush[string, struct{}]) error {
		err := post(ctx, f.Events)
		if err == nil || f.Attempt < maxPosts {
			return err
		}
		aside <- f.Events
		return nil
	},
})

// post stands for a request to the server, which is down here.
func post(context.Context, []string) error { return errors.New("connection refused") }

// Under Drop the events of a flush that is given up are gone when OnExhausted is called.
// A flush that would keep them puts them elsewhere in its last attempt.
func ExampleConfig_exhausted() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "posts") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Posts)
	if err != nil {
		log.Fatal(err)
	}
	for _, event := range []string{"signed up", "paid"} {
		if _, err := Posts.Add(ctx, host, "alice", event); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("put aside: %q\n", <-aside)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: put aside: ["signed up" "paid"]
}

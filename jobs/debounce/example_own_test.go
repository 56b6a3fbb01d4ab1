package debounce_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// Sums adds up visits in two stages: the visits of a page, and the sums of all pages. The
// name Sums inside of Flush would be an initialization cycle.
var Sums = debounce.New(debounce.Config[int, int]{
	Name: "visits", Quiet: 20 * time.Millisecond,
	Reduce: func(sum int, _ bool, n int) (int, error) { return sum + n, nil },
	Flush: func(ctx context.Context, f *debounce.Flush[int, int]) error {
		if f.ID == "all" {
			return nil
		}
		_, err := f.Job().Add(ctx, f, "all", f.State, debounce.EventID(f.Key))
		return err
	},
})

// A flush adds an event to another object of its own definition.
func ExampleFlush_Job() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "visits")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Sums)
	if err != nil {
		log.Fatal(err)
	}
	for _, n := range []int{3, 4} {
		if _, err := Sums.Add(ctx, host, "home", n); err != nil {
			log.Fatal(err)
		}
	}
	for e, err := range host.Watch(ctx, Sums.ID("all"), 0) {
		if err != nil {
			log.Fatal(err)
		}
		if e.Kind == debounce.EventFlushed {
			fmt.Println("the sums of all pages are flushed")
			break
		}
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: the sums of all pages are flushed
}

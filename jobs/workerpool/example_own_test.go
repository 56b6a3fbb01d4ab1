package workerpool_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Crawl visits a path, and submits the rest of it as a further task. The name Crawl
// inside of Work would be an initialization cycle.
var Crawl = workerpool.New(workerpool.Config[string, int]{
	Name: "crawl", Concurrency: 2,
	Work: func(ctx context.Context, t *workerpool.Task[string]) (int, error) {
		if _, rest, more := strings.Cut(t.In, "/"); more {
			if _, err := t.Pool().Enqueue(ctx, t, rest, workerpool.Idempotent(t.OutsideKey, time.Hour)); err != nil {
				return 0, err
			}
		}
		return len(t.In), nil
	},
})

// A task submits a further task to its own pool.
func ExampleTask_Pool() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "crawl")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Crawl)
	if err != nil {
		log.Fatal(err)
	}
	first, err := Crawl.Enqueue(ctx, host, "usr/local")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(Crawl.Wait(ctx, host, first.ID))
	fmt.Println(Crawl.Wait(ctx, host, workerpool.TaskID{Number: 2})) // the further task
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 9 <nil>
	// 5 <nil>
}

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

// Feeds asks a service that bears four requests at a time and fifty a second.
var Feeds = continuous.New(continuous.Config[struct{}]{
	Name:        "feed",
	Schedule:    jobs.Rate(time.Hour),
	Concurrency: 4,
	StartRate:   object.StartRate{Starts: 50, Per: time.Second, Burst: 4},
	Run:         func(context.Context, *continuous.Run[struct{}]) error { return nil },
})

func ExampleConfig_concurrency() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "feeds") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Feeds)
	if err != nil {
		log.Fatal(err)
	}
	started, err := Feeds.Start(ctx, host, "news", struct{}{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("created:", started.Created)
	for e, err := range host.Watch(ctx, Feeds.ID("news"), 0) {
		if err != nil {
			log.Fatal(err)
		}
		if e.Kind == jobs.EventSuccess {
			break
		}
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: created: true
}

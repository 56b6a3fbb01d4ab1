package continuous_test

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// Feeds asks a service that bears four requests at a time and fifty a second.
var Feeds = continuous.New(continuous.Config[report]{
	Name:        "feed",
	Schedule:    jobs.Rate(time.Hour),
	Concurrency: 4,
	StartRate:   object.StartRate{Starts: 50, Per: time.Second, Burst: 4},
	Run:         func(context.Context, *continuous.Run[report]) error { return nil },
})

func ExampleConfig_concurrency() {
	h, done := open(Feeds)
	defer done()
	started, err := Feeds.Start(context.Background(), h, "news", report{})
	fmt.Println(started.Created, err)
	after(h, Feeds, "news", jobs.EventSuccess, 1)
	// Output: true <nil>
}

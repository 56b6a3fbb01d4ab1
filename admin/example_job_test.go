package admin_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A tool shows one job from its stored rows, so it needs no definition of the job.
func ExampleAdmin_Job() {
	feeds := continuous.New(continuous.Config[string]{
		Name: "feed", StartPaused: true,
		Run: func(context.Context, *continuous.Run[string]) error { return nil },
	})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, feeds)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := feeds.Start(ctx, host, "news", "https://example.com/news"); err != nil {
		log.Fatal(err)
	}
	found, err := admin.Live(host).Job(ctx, feeds.ID("news"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Meta.Type, found.Meta.Status, found.Alarm.IsZero())
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: continuous paused true
}

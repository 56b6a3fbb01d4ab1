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

// A tool resumes all paused jobs of a program, of whichever types they are.
func ExampleAdmin_Jobs() {
	feeds := continuous.New(continuous.Config[string]{
		Name: "feed", StartPaused: true,
		Run: func(context.Context, *continuous.Run[string]) error { return nil },
	})
	definitions := []object.Definition{feeds}
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, definitions...)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, id := range []string{"news", "weather"} {
		if _, err := feeds.Start(ctx, host, id, "https://example.com/"+id); err != nil {
			log.Fatal(err)
		}
	}

	a := admin.Live(host, definitions...)
	for o := (admin.JobsOptions{Label: "paused"}); ; {
		page, err := a.Jobs(ctx, o)
		if err != nil {
			log.Fatal(err)
		}
		for _, job := range page.Jobs {
			_, err := a.Do(ctx, job.ID, "resume", nil)
			fmt.Println(job.Kind, job.ID, err)
		}
		if o.After = page.Next; page.Next == "" {
			break
		}
	}
	state, err := a.View(ctx, feeds.ID("news"), "state", nil)
	fmt.Println(string(state), err)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// continuous feed/news <nil>
	// continuous feed/weather <nil>
	// "https://example.com/news" <nil>
}

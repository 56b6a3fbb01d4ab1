package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A tool stops a job of which it knows no Go type.
func ExampleTable_Do() {
	type feed struct{ URL string }
	feeds := continuous.New(continuous.Config[feed]{
		Name: "feed", Schedule: jobs.Every(time.Hour), StartLater: true,
		Run: func(context.Context, *continuous.Run[feed]) error { return nil },
	})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, feeds)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()

	table := feeds.Verbs()
	for _, v := range table.Verbs()[:1] {
		fmt.Println(v.Name, v.Argument, "→", v.Answer)
	}
	answer, err := table.Do(ctx, host, "news", "start", []byte(`{"URL": "https://example.com"}`))
	fmt.Println(string(answer), err)
	_, err = table.Do(ctx, host, "news", "stop", []byte(`{"reason": "the site has moved"}`))
	fmt.Println(err)
	answer, err = table.View(ctx, host, "news", "state", nil)
	fmt.Println(string(answer), err)
	_, err = table.Do(ctx, host, "news", "fly", nil)
	fmt.Println(errors.Is(err, verbs.ErrUnknown))
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// start {"URL": "text"} → {"created": false, "status": "text", "sent": false}
	// {"created":true,"status":"running"} <nil>
	// <nil>
	// {"URL":"https://example.com"} <nil>
	// true
}

// A server with several clients puts the name of the client before each key, so that the keys of two
// clients never meet.
func ExampleTable_DoKeyed() {
	thumbs := workerpool.New(workerpool.Config[string, int]{Name: "thumb"})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, thumbs)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, client := range []string{"anna", "anna", "bob"} {
		_, err := thumbs.Verbs().DoKeyed(ctx, host, "", "enqueue", []byte(`{"in": "cat.png", "idempotent": "1"}`), func(keys []*string) error {
			for _, key := range keys {
				*key = client + "/" + *key
			}
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	stats, err := thumbs.Stats(ctx, host)
	fmt.Println(stats.Submitted, err)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: 2 <nil>
}

// The author of a job type tells how far each verb can be taken back. A page for people asks before those
// that cannot.
func ExampleVerb_As() {
	none := func(context.Context, object.Caller, string) error { return nil }
	table := verbs.NewTable("feed", "own", []verbs.Verb{
		verbs.New("pause", verbs.Operator, "begin nothing until resume", verbs.Plain(none)).As(verbs.Harmless),
		verbs.New("terminate", verbs.Operator, "delete the job", verbs.Plain(none)).As(verbs.Final),
	}, nil)
	for _, v := range table.Verbs() {
		fmt.Println(v.Name, v.Effect)
	}
	// Output:
	// pause harmless
	// terminate final
}

// A program lists the verbs of its job types, for example in its help.
func ExampleTable_Views() {
	feeds := continuous.New(continuous.Config[string]{Name: "feed", Run: func(context.Context, *continuous.Run[string]) error { return nil }})
	for _, d := range []verbs.Described{feeds} {
		for _, v := range d.Verbs().Views() {
			fmt.Printf("%s %s (%s): %s\n", d.Name(), v.Name, v.Role, v.Help)
		}
	}
	// Output:
	// feed status (reader): show the metadata and when the next run is due
	// feed state (reader): show the state that the last successful run left
}

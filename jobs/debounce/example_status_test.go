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

// Indexer indexes the pages of a site that have changed. It remembers the id of an event
// for an hour.
var Indexer = debounce.New(debounce.Config[string, struct{}]{
	Name:  "indexer",
	Quiet: time.Minute,
	Dedup: time.Hour,
	Flush: func(context.Context, *debounce.Flush[string, struct{}]) error { return nil },
})

// An object that has nothing to flush ends by itself when it has forgotten the ids of
// its events.
func ExampleStatus() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "indexer") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Indexer)
	if err != nil {
		log.Fatal(err)
	}

	if _, err := Indexer.Add(ctx, host, "site", "/home", debounce.EventID("e1")); err != nil {
		log.Fatal(err)
	}
	st, err := Indexer.Status(ctx, host, "site")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("events:", st.Events, "ends by itself:", !st.PurgeAt.IsZero())

	cleared := time.Now()
	if _, err := Indexer.Clear(ctx, host, "site"); err != nil {
		log.Fatal(err)
	}
	st, err = Indexer.Status(ctx, host, "site")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("events:", st.Events, "ends in an hour:", !st.PurgeAt.Before(cleared.Add(time.Hour)))

	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// events: 1 ends by itself: false
	// events: 0 ends in an hour: true
}

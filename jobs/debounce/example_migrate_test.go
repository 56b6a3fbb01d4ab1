package debounce_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// oldVisits is the definition before the deploy. Its events are the names of pages.
var oldVisits = debounce.New(debounce.Config[string, struct{}]{
	Name: "visits", Version: "1", Quiet: time.Hour,
	Flush: func(context.Context, *debounce.Flush[string, struct{}]) error { return nil },
})

// Visit is the event after the deploy.
type Visit struct {
	Page  string
	Times int
}

var Visits = debounce.New(debounce.Config[Visit, struct{}]{
	Name:         "visits",
	Version:      "2",
	MigrateEvent: migrateVisit,
	Quiet:        time.Hour,
	Flush:        func(context.Context, *debounce.Flush[Visit, struct{}]) error { return nil },
})

// migrateVisit makes a Visit of an event that another version stored.
func migrateVisit(from string, raw []byte) (Visit, error) {
	if from != "1" {
		return Visit{}, fmt.Errorf("no visit of version %q is known here", from)
	}
	var page string
	err := json.Unmarshal(raw, &page)
	return Visit{Page: page, Times: 1}, err
}

// A deploy changes the type of the events while some wait for their flush.
func ExampleConfig_migrateEvent() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "visits") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, oldVisits)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := oldVisits.Add(ctx, host, "wiki", "home"); err != nil {
		log.Fatal(err)
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}

	host, err = object.Open(object.Options{Dir: dir}, Visits)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := Visits.Add(ctx, host, "wiki", Visit{Page: "news", Times: 3}); err != nil {
		log.Fatal(err)
	}
	waiting, err := Visits.Pending(ctx, host, "wiki")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%+v\n", waiting.Events)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: [{Page:home Times:1} {Page:news Times:3}]
}

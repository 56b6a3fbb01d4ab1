package recovery_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// exampleStore is a store at rest, with one job that holds what b says.
func exampleStore(b broken) *storage.Store {
	mem := memstore.New()
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: mem}}, raw)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := put.Call(context.Background(), h, "one", b); err != nil {
		log.Fatal(err)
	}
	if err := h.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
	store, err := storage.Open(storage.Options{Engine: mem.Crash(0)})
	if err != nil {
		log.Fatal(err)
	}
	return store
}

// examine is what Examine finds of that job.
func examine(store *storage.Store) *recovery.Finding {
	o, err := store.Find(storage.ID{Class: "ticker", Name: "one"})
	if err != nil {
		log.Fatal(err)
	}
	found, err := recovery.Examine(store, o)
	if err != nil {
		log.Fatal(err)
	}
	return found
}

// A job that says it is executing has an open execution, or something is wrong.
func ExampleExamine() {
	store := exampleStore(broken{Meta: map[string]any{"status": "executing"}, Armed: true})
	defer store.Close()
	o, err := store.Find(storage.ID{Class: "ticker", Name: "one"})
	if err != nil {
		log.Fatal(err)
	}
	found, err := recovery.Examine(store, o)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found)
	fmt.Println(found.Promise, found.Suspect)
	// Output:
	// ticker/one: status is executing and no execution is open (J5)
	// J5 false
}

// A job that is running without an alarm may have been forgotten, or may wait for an
// event: a suspect is for the job type to judge, which Scrub with Repair asks.
func ExampleFinding() {
	store := exampleStore(broken{Meta: map[string]any{"status": "running"}})
	defer store.Close()
	if found := examine(store); found != nil && found.Suspect {
		fmt.Println("suspect:", found.Problem)
	}
	// Output: suspect: status is running and no alarm is set
}

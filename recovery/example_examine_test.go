package recovery_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// job stores rows with the keys of a job. A job type never stores the contradictions of
// these examples.
type job struct{ st *object.State }

// atRest is a store with one job, which has the given status, no alarm and no open
// execution. A tool opens the directory of a host that has ended: storage.Options{Dir:
// "data"}.
func atRest(status string) *storage.Store {
	ctx, mem := context.Background(), memstore.New()
	class := object.Define("report", func(_ context.Context, st *object.State) (*job, error) { return &job{st}, nil })
	put := object.Handle(class, "put", func(j *job, ctx context.Context, status string) (string, error) {
		id := j.st.ID()
		meta := jobs.Meta{Type: "continuous", Name: id.Class, ID: id.Name, Status: jobs.Status(status)}
		return status, j.st.Storage().Put(ctx, jobs.MetaKey, meta)
	})
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: mem}}, class)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := put.Call(ctx, h, "one", status); err != nil {
		log.Fatal(err)
	}
	if err := h.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	store, err := storage.Open(storage.Options{Engine: mem.Crash(0)})
	if err != nil {
		log.Fatal(err)
	}
	return store
}

// A job that says it is executing has an open execution, or something is wrong.
func ExampleExamine() {
	store := atRest("executing")
	defer store.Close()
	o, err := store.Find(storage.ID{Class: "report", Name: "one"})
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
	// report/one: status is executing and no execution is open (J5)
	// J5 false
}

// A job that is running without an alarm may have been forgotten, or may wait for an
// event: a suspect is for the job type to judge, which Scrub with Repair asks.
func ExampleFinding() {
	store := atRest("running")
	defer store.Close()
	o, err := store.Find(storage.ID{Class: "report", Name: "one"})
	if err != nil {
		log.Fatal(err)
	}
	found, err := recovery.Examine(store, o)
	if err != nil {
		log.Fatal(err)
	}
	if found != nil && found.Suspect {
		fmt.Println("suspect:", found.Problem)
	}
	// Output: suspect: status is running and no alarm is set
}

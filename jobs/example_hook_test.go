package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// desk is an object that keeps a list of work that a person must check.
type desk struct{ st *object.State }

var (
	desks = object.Define("desk", func(_ context.Context, st *object.State) (*desk, error) { return &desk{st}, nil })
	lay   = object.Handle(desks, "lay", func(d *desk, ctx context.Context, note string) (int, error) {
		var notes []string
		if _, err := d.st.Storage().GetInto(ctx, "notes", &notes); err != nil {
			return 0, err
		}
		notes = append(notes, note)
		return len(notes), d.st.Storage().Put(ctx, "notes", notes)
	})
)

// A hook calls another object with the exhaustion as the caller, and its key as the
// idempotency key, so that a repeat of the hook changes nothing.
func ExampleExhaustion_Invoke() {
	told := make(chan struct{})
	job := continuous.New(continuous.Config[int]{
		Name: "import",
		Run:  func(context.Context, *continuous.Run[int]) error { return jobs.Permanent(errors.New("no such file")) },
		OnExhausted: func(ctx context.Context, x *jobs.Exhaustion) error {
			notes, err := lay.Call(ctx, x, "alice", x.ID+": "+x.Error, object.Idempotent(x.Key, 0))
			fmt.Println(notes, err)
			close(told)
			return err
		},
	})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, job, desks)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := job.Start(ctx, host, "orders", 0); err != nil {
		log.Fatal(err)
	}
	<-told
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: 1 <nil>
}

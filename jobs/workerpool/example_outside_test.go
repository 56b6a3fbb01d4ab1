package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Prints has no Work: printers claim its tasks.
var Prints = workerpool.New(workerpool.Config[string, int]{Name: "print", Lease: time.Hour})

// printOut claims up to ten tasks and prints them. It is called by the program that has
// the store; a printer elsewhere would reach it through an API of that program.
func printOut(ctx context.Context, host *object.Host, printed func(text string) (pages int, err error)) error {
	claims, err := Prints.Claim(ctx, host, 10, 0) // for Config.Lease
	if err != nil {
		return err
	}
	for _, c := range claims {
		lease, err := Prints.Heartbeat(ctx, host, c.Lease) // before the lease ends; here, once a task
		if errors.Is(err, jobs.ErrStaleExecution) {
			continue // the lease had ended: the task belongs to another claim by now
		}
		if err != nil {
			return err
		}
		pages, bad := 0, workerpool.ErrCancelled
		if !lease.Cancelling { // else it was cancelled
			pages, bad = printed(c.Task.In)
		}
		if bad == nil {
			err = Prints.Ack(ctx, host, lease, pages)
		} else {
			err = Prints.Nack(ctx, host, lease, bad) // cancelled, tried again, or dead
		}
		if err != nil && !errors.Is(err, jobs.ErrStaleExecution) {
			return err
		}
	}
	return nil
}

// A worker outside claims tasks, shows that it lives, and tells how each has ended.
func ExamplePool_outside() {
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, Prints) // a program gives a Dir
	if err != nil {
		log.Fatal(err)
	}
	defer host.Shutdown(ctx)
	task, err := Prints.Enqueue(ctx, host, "dear sir")
	if err != nil {
		log.Fatal(err)
	}
	if err := printOut(ctx, host, func(string) (int, error) { return 2, nil }); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Prints.Wait(ctx, host, task.ID))
	// Output: 2 <nil>
}

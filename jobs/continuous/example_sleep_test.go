package continuous_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// waits gets the error that ended a wait.
var waits = make(chan error, 10)

// Exports asks a service every 10 ms whether it has made the export of a day.
var Exports = continuous.New(continuous.Config[struct{}]{
	Name:     "export",
	Schedule: jobs.Every(24 * time.Hour),
	Timeout:  100 * time.Millisecond,
	Run: func(ctx context.Context, run *continuous.Run[struct{}]) error {
		for !exported(ctx, run.ID) {
			if err := run.Sleep(ctx, 10*time.Millisecond); err != nil {
				waits <- err
				return err
			}
		}
		return nil
	},
})

// exported stands for a request to the service, which never gets ready here.
func exported(context.Context, string) bool { return false }

// A run that waits for something looks for it now and then. The wait ends early, with
// the cause, when the execution has used up its time.
func ExampleRun_Sleep() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "exports") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Exports)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := Exports.Start(ctx, host, "north", struct{}{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println("timed out:", errors.Is(<-waits, jobs.ErrTimeout))
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: timed out: true
}

package debounce_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// waits gets the error that ended a wait.
var waits = make(chan error, 10)

// Imports gives files to a service, and asks it every 10 ms whether it has read them.
var Imports = debounce.New(debounce.Config[string, struct{}]{
	Name:      "import",
	Quiet:     time.Hour,
	MaxEvents: 2,
	Timeout:   100 * time.Millisecond,
	Flush: func(ctx context.Context, f *debounce.Flush[string, struct{}]) error {
		for !imported(ctx, f.Events) {
			if err := f.Sleep(ctx, 10*time.Millisecond); err != nil {
				waits <- err
				return err
			}
		}
		return nil
	},
})

// imported stands for a request to the service, which never gets ready here.
func imported(context.Context, []string) bool { return false }

// A flush that waits for something looks for it now and then. The wait ends early, with
// the cause, when the attempt has used up its time.
func ExampleFlush_Sleep() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "imports") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Imports)
	if err != nil {
		log.Fatal(err)
	}
	for _, file := range []string{"may.csv", "june.csv"} {
		if _, err := Imports.Add(ctx, host, "sales", file); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("timed out:", errors.Is(<-waits, jobs.ErrTimeout))
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: timed out: true
}

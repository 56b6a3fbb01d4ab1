package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Scans gives files to a scanner, and asks it every 10 ms for the result.
var Scans = workerpool.New(workerpool.Config[string, string]{
	Name:    "scan",
	Timeout: 100 * time.Millisecond,
	Retry:   jobs.Retry{MaxAttempts: 1},
	Work: func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
		for {
			if found, ok := scanned(ctx, t.In); ok {
				return found, nil
			}
			if err := t.Sleep(ctx, 10*time.Millisecond); err != nil {
				return "", err
			}
		}
	},
})

// scanned stands for a request to the scanner, which never gets ready here.
func scanned(context.Context, string) (found string, ok bool) { return "", false }

// Work that waits for something looks for it now and then. The wait ends early, with
// the cause, when the attempt has used up its time.
func ExampleTask_Sleep() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "scans") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Scans)
	if err != nil {
		log.Fatal(err)
	}
	task, err := Scans.Enqueue(ctx, host, "invoice.pdf")
	if err != nil {
		log.Fatal(err)
	}
	_, err = Scans.Wait(ctx, host, task.ID)
	if !errors.Is(err, workerpool.ErrFailed) {
		log.Fatal(err)
	}
	fmt.Println(err)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: scan: task 0-1: workerpool: task is dead: jobs: execution timed out
}

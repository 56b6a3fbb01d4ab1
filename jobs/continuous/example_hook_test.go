package continuous_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// told gets the message of the hook. A program would send a mail, with the key of the
// exhaustion, so that the other side can tell a repeat.
var told = make(chan string, 10)

// Prints has a run that fails for good.
var Prints = continuous.New(continuous.Config[struct{}]{
	Name: "print",
	Run: func(context.Context, *continuous.Run[struct{}]) error {
		return jobs.Permanent(errors.New("no paper"))
	},
	OnExhausted: func(_ context.Context, x *jobs.Exhaustion) error {
		told <- fmt.Sprintf("run %d of %s: %s, after %d attempt: %s, key %t", x.Run, x.ID, x.Reason, x.Attempts, x.Error, x.Key != "")
		return nil
	},
})

// A hook is called for a run that was given up, at least once and with one key.
func ExampleConfig_onExhausted() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "prints") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Prints)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := Prints.Start(ctx, host, "north", struct{}{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-told)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: run 1 of north: permanent, after 1 attempt: no paper, key true
}

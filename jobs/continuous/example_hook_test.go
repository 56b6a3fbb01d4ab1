package continuous_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
)

// A run that was given up is told to somebody. The key is the same if the call is
// repeated, so that the other side can tell a repeat.
func ExampleConfig_onExhausted() {
	told := make(chan string)
	job := continuous.New(continuous.Config[report]{
		Name: "failing",
		Run:  func(context.Context, *continuous.Run[report]) error { return jobs.Permanent(errors.New("no paper")) },
		OnExhausted: func(_ context.Context, x *jobs.Exhaustion) error {
			told <- fmt.Sprintf("run %d of %s: %s, after %d attempt: %s, key %t", x.Run, x.ID, x.Reason, x.Attempts, x.Error, x.Key != "")
			return nil
		},
	})
	h, done := open(job)
	defer done()
	if _, err := job.Start(context.Background(), h, "north", report{}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(<-told)
	// Output: run 1 of north: permanent, after 1 attempt: no paper, key true
}

package continuous_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
)

// A run that waits for something looks for it now and then. The wait ends early, with
// the cause, when the execution has used up its time.
func ExampleRun_Sleep() {
	job := continuous.New(continuous.Config[report]{
		Name: "waiting", Timeout: 300 * time.Millisecond,
		Run: func(ctx context.Context, run *continuous.Run[report]) error {
			fmt.Println(run.Sleep(ctx, time.Millisecond))
			err := run.Sleep(ctx, time.Hour)
			fmt.Println(errors.Is(err, jobs.ErrTimeout))
			return err
		},
	})
	h, done := open(job)
	defer done()
	if _, err := job.Start(context.Background(), h, "north", report{}); err != nil {
		fmt.Println(err)
	}
	after(h, job, "north", jobs.EventExhausted, 1)
	// Output:
	// <nil>
	// true
}

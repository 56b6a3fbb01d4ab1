package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Work that waits for something looks for it now and then. The wait ends early, with
// the cause, when the attempt has used up its time.
func ExampleTask_Sleep() {
	patient := workerpool.New(workerpool.Config[int, string]{
		Name: "patient", Timeout: 300 * time.Millisecond,
		Work: func(ctx context.Context, t *workerpool.Task[int]) (string, error) {
			if err := t.Sleep(ctx, time.Millisecond); err != nil {
				return "", err
			}
			err := t.Sleep(ctx, time.Hour)
			return fmt.Sprintf("timed out: %t", errors.Is(err, jobs.ErrTimeout)), nil
		},
	})
	withHost(func(ctx context.Context, h *object.Host) {
		task := check(patient.Enqueue(ctx, h, 12))
		fmt.Println(patient.Wait(ctx, h, task.ID))
	}, patient)
	// Output: timed out: true <nil>
}

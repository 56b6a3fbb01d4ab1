package debounce_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// A flush that waits for something looks for it now and then. The wait ends early, with
// the cause, when the attempt has used up its time.
func ExampleFlush_Sleep() {
	done := make(chan struct{})
	job := debounce.New(debounce.Config[Change, Batch]{
		Name: "hooks", Quiet: time.Hour, MaxEvents: 1, Reduce: sum, Timeout: 300 * time.Millisecond,
		Flush: func(ctx context.Context, f *debounce.Flush[Change, Batch]) error {
			defer close(done)
			fmt.Println(f.Sleep(ctx, time.Millisecond))
			err := f.Sleep(ctx, time.Hour)
			fmt.Println(errors.Is(err, jobs.ErrTimeout))
			return err
		},
	})
	with(func(ctx context.Context, host *object.Host) {
		job.Add(ctx, host, "contact-9", Change{})
		<-done
	}, job)
	// Output:
	// <nil>
	// true
}

// An object without events ends by itself when it has forgotten their ids.
func ExampleStatus() {
	flushed := make(chan struct{})
	job := debounce.New(debounce.Config[Change, Batch]{
		Name: "hooks", Quiet: time.Hour, Reduce: sum, Dedup: time.Hour,
		Flush: func(context.Context, *debounce.Flush[Change, Batch]) error { close(flushed); return nil },
	})
	with(func(ctx context.Context, host *object.Host) {
		job.Add(ctx, host, "contact-9", Change{})
		st, err := job.Status(ctx, host, "contact-9")
		fmt.Println("with an event:", st.PurgeAt.IsZero(), err)
		job.Clear(ctx, host, "contact-9")
		st, err = job.Status(ctx, host, "contact-9")
		fmt.Println("without one:", st.PurgeAt.Sub(st.Meta.UpdatedAt) >= time.Hour, err)
	}, job)
	// Output:
	// with an event: true <nil>
	// without one: true <nil>
}

// Under Drop the events of a flush that is given up are gone when OnExhausted is called.
// A flush that would keep them puts them elsewhere in its last attempt.
func ExampleConfig_exhausted() {
	const attempts = 2
	lost := make(chan []Change, 1)
	send := func([]Change) error { return errors.New("nobody listens") }
	job := debounce.New(debounce.Config[Change, struct{}]{
		Name: "hooks", Quiet: time.Hour, MaxEvents: 2,
		Exhausted: debounce.Drop, Retry: jobs.Retry{MaxAttempts: attempts, Backoff: jobs.Constant(time.Millisecond)},
		Flush: func(_ context.Context, f *debounce.Flush[Change, struct{}]) error {
			err := send(f.Events)
			if err != nil && f.Attempt >= attempts {
				lost <- f.Events // such as a call of another object, with f.Key as its idempotency key
				return nil
			}
			return err
		},
	})
	with(func(ctx context.Context, host *object.Host) {
		job.Add(ctx, host, "contact-9", Change{ID: "e1"})
		job.Add(ctx, host, "contact-9", Change{ID: "e2"})
		fmt.Println(<-lost)
	}, job)
	// Output: [{e1 0} {e2 0}]
}

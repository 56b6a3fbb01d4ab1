package debounce_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// Change is the event of the examples.
type Change struct {
	ID    string
	Pages int
}

// Batch is what changes are folded into.
type Batch struct{ Changes, Pages int }

func fold2(b Batch, _ bool, c Change) (Batch, error) {
	return Batch{b.Changes + 1, b.Pages + c.Pages}, nil
}

// with runs an example on a host in a new directory.
func with(example func(ctx context.Context, host *object.Host), defs ...object.Definition) {
	dir, err := os.MkdirTemp("", "debounce")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, defs...)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	example(ctx, host)
	if err := host.Shutdown(ctx); err != nil {
		fmt.Println(err)
	}
}

// later is a job whose flushes are a long way off.
func later() *debounce.Job[Change, Batch] {
	return debounce.New(debounce.Config[Change, Batch]{
		Name: "later", Quiet: time.Hour, Reduce: fold2,
		Flush: func(context.Context, *debounce.Flush[Change, Batch]) error { return nil },
	})
}

func ExampleNew() {
	done := make(chan struct{})
	hooks := debounce.New(debounce.Config[Change, Batch]{
		Name:   "hooks",
		Quiet:  20 * time.Millisecond,
		Reduce: fold2,
		Flush: func(_ context.Context, f *debounce.Flush[Change, Batch]) error {
			fmt.Printf("flush %d of %s: %d changes, %d pages, %s\n", f.Generation, f.ID, f.State.Changes, f.State.Pages, f.Reason)
			close(done)
			return nil
		},
	})
	with(func(ctx context.Context, host *object.Host) {
		hooks.Add(ctx, host, "contact-9", Change{ID: "e1", Pages: 3}, jobs.EventID("e1"))
		hooks.Add(ctx, host, "contact-9", Change{ID: "e2", Pages: 4}, jobs.EventID("e2"))
		<-done
	}, hooks)
	// Output: flush 1 of contact-9: 2 changes, 7 pages, quiet
}

func ExampleNew_mistake() {
	bad := debounce.New(debounce.Config[Change, Batch]{Name: "hooks", Quiet: time.Second})
	_, err := object.Open(object.Options{Dir: os.TempDir()}, bad)
	fmt.Println(errors.Is(err, jobs.ErrInvalid))
	// Output: true
}

func ExampleConfig_Validate() {
	c := debounce.Config[Change, Batch]{Name: "hooks", Quiet: time.Second}
	fmt.Println(c.Validate())
	// Output: debounce hooks: invalid: Flush is nil
}

func ExampleJob_Add() {
	job := later()
	with(func(ctx context.Context, host *object.Host) {
		for _, id := range []string{"e1", "e2", "e1"} {
			ack, err := job.Add(ctx, host, "contact-9", Change{ID: id}, jobs.EventID(id))
			fmt.Println(id, ack.Generation, ack.Events, err)
		}
	}, job)
	// Output:
	// e1 1 1 <nil>
	// e2 1 2 <nil>
	// e1 1 1 <nil>
}

func ExampleJob_FlushNow() {
	done := make(chan struct{})
	job := debounce.New(debounce.Config[Change, struct{}]{
		Name: "hooks", Quiet: time.Hour,
		Flush: func(_ context.Context, f *debounce.Flush[Change, struct{}]) error {
			fmt.Println(f.Generation, f.Reason, len(f.Events))
			close(done)
			return nil
		},
	})
	with(func(ctx context.Context, host *object.Host) {
		job.Add(ctx, host, "contact-9", Change{})
		last, err := job.FlushNow(ctx, host, "contact-9")
		<-done
		fmt.Println(last, err)
	}, job)
	// Output:
	// 1 manual 1
	// 1 <nil>
}

func ExampleJob_Status() {
	job := later()
	with(func(ctx context.Context, host *object.Host) {
		job.Add(ctx, host, "contact-9", Change{})
		st, err := job.Status(ctx, host, "contact-9")
		fmt.Println(st.Meta.Status, st.Generation, st.Events, st.Reason, err)
	}, job)
	// Output: running 1 1 quiet <nil>
}

func ExampleJob_Pending() {
	job := later()
	with(func(ctx context.Context, host *object.Host) {
		job.Add(ctx, host, "contact-9", Change{Pages: 2})
		job.Add(ctx, host, "contact-9", Change{Pages: 5})
		p, err := job.Pending(ctx, host, "contact-9")
		fmt.Println(p.Count, p.State.Pages, err)
	}, job)
	// Output: 2 7 <nil>
}

func ExampleJob_Pause() {
	job := later()
	with(func(ctx context.Context, host *object.Host) {
		job.Add(ctx, host, "contact-9", Change{})
		fmt.Println(job.Pause(ctx, host, "contact-9"))
		_, err := job.FlushNow(ctx, host, "contact-9")
		fmt.Println(errors.Is(err, jobs.ErrIllegalMove))
	}, job)
	// Output:
	// <nil>
	// true
}

func ExampleJob_Resume() {
	job := later()
	with(func(ctx context.Context, host *object.Host) {
		job.Add(ctx, host, "contact-9", Change{})
		job.Pause(ctx, host, "contact-9")
		fmt.Println(job.Resume(ctx, host, "contact-9"))
		st, _ := job.Status(ctx, host, "contact-9")
		fmt.Println(st.Meta.Status, st.Events)
	}, job)
	// Output:
	// <nil>
	// running 1
}

func ExampleJob_Terminate() {
	job := later()
	with(func(ctx context.Context, host *object.Host) {
		job.Add(ctx, host, "contact-9", Change{})
		fmt.Println(job.Terminate(ctx, host, "contact-9", "contact is gone"))
		_, err := job.Status(ctx, host, "contact-9")
		fmt.Println(errors.Is(err, jobs.ErrNotFound))
	}, job)
	// Output:
	// <nil>
	// true
}

func ExampleJob_Clear() {
	job := later()
	with(func(ctx context.Context, host *object.Host) {
		job.Add(ctx, host, "contact-9", Change{})
		job.Add(ctx, host, "contact-9", Change{})
		fmt.Println(job.Clear(ctx, host, "contact-9"))
	}, job)
	// Output: 2 <nil>
}

// A flush that updates another object passes itself as the caller, and its key,
// so that the object sees each generation once.
func ExampleFlush_Invoke() {
	done := make(chan struct{})
	job := debounce.New(debounce.Config[Change, Batch]{
		Name: "hooks", Quiet: time.Hour, MaxEvents: 2, Reduce: fold2,
		Flush: func(ctx context.Context, f *debounce.Flush[Change, Batch]) error {
			total, err := fold.Call(ctx, f, "pages", f.State.Pages, object.Idempotent(f.Key, 0))
			fmt.Println(total, err)
			close(done)
			return err
		},
	})
	with(func(ctx context.Context, host *object.Host) {
		job.Add(ctx, host, "contact-9", Change{Pages: 2})
		job.Add(ctx, host, "contact-9", Change{Pages: 5})
		<-done
	}, job, totalsClass)
	// Output: 7 <nil>
}

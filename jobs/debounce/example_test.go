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

// Change is the event of the examples.
type Change struct {
	ID    string
	Pages int
}

// Batch is a summary of changes.
type Batch struct{ Changes, Pages int }

func sum(b Batch, _ bool, c Change) (Batch, error) {
	return Batch{b.Changes + 1, b.Pages + c.Pages}, nil
}

// with runs an example on a host in a new directory. A program names one that stays.
func with(example func(ctx context.Context, host *object.Host), defs ...object.Definition) {
	dir, err := os.MkdirTemp("", "debounce")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, defs...)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	example(ctx, host)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
}

// later is a job that flushes a long time from now.
func later() *debounce.Job[Change, Batch] {
	return debounce.New(debounce.Config[Change, Batch]{
		Name: "later", Quiet: time.Hour, Reduce: sum,
		Flush: func(context.Context, *debounce.Flush[Change, Batch]) error { return nil },
	})
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
			ack, err := job.Add(ctx, host, "contact-9", Change{ID: id}, debounce.EventID(id))
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
		if _, err := job.Add(ctx, host, "contact-9", Change{}); err != nil {
			log.Fatal(err)
		}
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
		if _, err := job.Add(ctx, host, "contact-9", Change{}); err != nil {
			log.Fatal(err)
		}
		st, err := job.Status(ctx, host, "contact-9")
		fmt.Println(st.Meta.Status, st.Generation, st.Events, st.Reason, err)
	}, job)
	// Output: running 1 1 quiet <nil>
}

func ExampleJob_Pending() {
	job := later()
	with(func(ctx context.Context, host *object.Host) {
		if _, err := job.Add(ctx, host, "contact-9", Change{Pages: 2}); err != nil {
			log.Fatal(err)
		}
		if _, err := job.Add(ctx, host, "contact-9", Change{Pages: 5}); err != nil {
			log.Fatal(err)
		}
		p, err := job.Pending(ctx, host, "contact-9")
		fmt.Println(p.Count, p.State.Pages, err)
	}, job)
	// Output: 2 7 <nil>
}

func ExampleJob_Pause() {
	job := later()
	with(func(ctx context.Context, host *object.Host) {
		if _, err := job.Add(ctx, host, "contact-9", Change{}); err != nil {
			log.Fatal(err)
		}
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
		if _, err := job.Add(ctx, host, "contact-9", Change{}); err != nil {
			log.Fatal(err)
		}
		if err := job.Pause(ctx, host, "contact-9"); err != nil {
			log.Fatal(err)
		}
		fmt.Println(job.Resume(ctx, host, "contact-9"))
		st, err := job.Status(ctx, host, "contact-9")
		fmt.Println(st.Meta.Status, st.Events, err)
	}, job)
	// Output:
	// <nil>
	// running 1 <nil>
}

func ExampleJob_Terminate() {
	job := later()
	with(func(ctx context.Context, host *object.Host) {
		if _, err := job.Add(ctx, host, "contact-9", Change{}); err != nil {
			log.Fatal(err)
		}
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
		if _, err := job.Add(ctx, host, "contact-9", Change{}); err != nil {
			log.Fatal(err)
		}
		if _, err := job.Add(ctx, host, "contact-9", Change{}); err != nil {
			log.Fatal(err)
		}
		fmt.Println(job.Clear(ctx, host, "contact-9"))
	}, job)
	// Output: 2 <nil>
}

func ExampleJob_AddAll() {
	hooks := later()
	with(func(ctx context.Context, host *object.Host) {
		for _, r := range hooks.AddAll(ctx, host, []debounce.Add[Change]{
			{ID: "wiki", Event: Change{"a", 1}}, {ID: "wiki", Event: Change{"b", 2}}, {ID: "blog", Event: Change{"c", 3}},
		}) {
			fmt.Println(r.Ack.Events, r.Err)
		}
	}, hooks)
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 1 <nil>
}

package why_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A pool without a Work waits for workers outside, and a job without a schedule for a trigger.
func Example() {
	thumbs := workerpool.New(workerpool.Config[string, string]{Name: "thumbs"})
	report := continuous.New(continuous.Config[int]{Name: "report", StartLater: true, Run: func(context.Context, *continuous.Run[int]) error { return nil }})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, thumbs, report)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := report.Start(ctx, host, "june", 0); err != nil {
		log.Fatal(err)
	}
	ref, err := thumbs.Enqueue(ctx, host, "cat.png", workerpool.Key("cats"))
	if err != nil {
		log.Fatal(err)
	}
	src := why.Live(host, thumbs, report)
	task, err := why.Task(ctx, src, "thumbs", ref.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(task.Code, task.Do)
	if err := thumbs.Pause(ctx, host); err != nil {
		log.Fatal(err)
	}
	job, err := why.Job(ctx, src, report.ID("june"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(job.Code, job.Text)
	all, err := why.All(ctx, src)
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range all.Answers {
		fmt.Println(a.ID, a.Code)
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// no-work-here [start workers that claim tasks]
	// needs-trigger It has no schedule and runs when it is triggered.
	// thumbs/0 pool-paused
}

// A look at the store that a program has left.
func ExampleCold() {
	mem := memstore.New()
	report := continuous.New(continuous.Config[int]{Name: "report", StartPaused: true, Run: func(context.Context, *continuous.Run[int]) error { return nil }})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: mem}}, report)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := report.Start(ctx, host, "june", 0); err != nil {
		log.Fatal(err)
	}
	store, err := storage.OpenReadOnly(storage.Options{Engine: mem.Crash(0)}) // as after a power failure
	if err != nil {
		log.Fatal(err)
	}
	a, err := why.Object(ctx, why.Cold(store, time.Now()), report.ID("june"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Holds(), a.Text)
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: [not-open paused] No process has the store open; the last one did not end in order.
}

// The codes, with their meaning and their remedy.
func ExampleCodes() {
	for _, c := range why.Codes() {
		if c.Code == why.BehindKey {
			fmt.Println(c.Means, c.Do)
		}
	}
	// Output: earlier tasks of the same key have not ended [wait for the task in `because`, or cancel it]
}

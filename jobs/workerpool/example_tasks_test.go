package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// A tool lists the tasks in the directory of a program that has ended. It needs no definition of
// the pool.
func ExampleTasks() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	thumbs := workerpool.New(workerpool.Config[string, int]{Name: "thumbs", Partitions: 1})
	host, err := object.Open(object.Options{Dir: dir}, thumbs)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, image := range []string{"a.png", "b.png"} {
		if _, err := thumbs.Enqueue(ctx, host, image, workerpool.Key(image)); err != nil {
			log.Fatal(err)
		}
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}

	store, err := storage.OpenReadOnly(storage.Options{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	o := workerpool.TasksOptions{States: []workerpool.State{workerpool.Pending}, Limit: 1}
	for {
		page, err := workerpool.Tasks(ctx, object.NewReader(store), "thumbs", o)
		if err != nil {
			log.Fatal(err)
		}
		for _, task := range page.Tasks {
			fmt.Println(task.ID, task.State, task.Key)
		}
		if o.After = page.Next; page.Next == "" {
			break
		}
	}
	_, err = workerpool.Tasks(ctx, object.NewReader(store), "thumbs", workerpool.TasksOptions{Limit: 1001})
	fmt.Println(err)
	if err := errors.Join(store.Close(), os.RemoveAll(dir)); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 0-1 pending a.png
	// 0-2 pending b.png
	// thumbs: Tasks: jobs: invalid: limit 1001 is not from 0 to 1000
}

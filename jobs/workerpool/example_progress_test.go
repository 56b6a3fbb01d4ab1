package workerpool_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Imports read a file and then index it. looked is closed when the program has looked at
// the progress.
var (
	halfway = make(chan struct{})
	looked  = make(chan struct{})
	Imports = workerpool.New(workerpool.Config[string, int]{
		Name:   "imports",
		Phases: []string{"read", "index"},
		Work: func(ctx context.Context, t *workerpool.Task[string]) (int, error) {
			rows, err := workerpool.Phase(ctx, t, "read", func(context.Context) (int, error) { return 2000, nil })
			if err != nil {
				return 0, err
			}
			return workerpool.Phase(ctx, t, "index", func(ctx context.Context) (int, error) {
				for done := 0; done < rows; done += 500 {
					if err := t.Progress(ctx, 100*done/rows, fmt.Sprint(done, " rows")); err != nil {
						return 0, err
					}
					if done == 0 {
						close(halfway)
						<-looked
					}
				}
				return rows, nil
			})
		},
	})
)

// A program shows how far a task is, and reads the results of its finished phases.
func ExampleTask_Progress() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "imports") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Imports)
	if err != nil {
		log.Fatal(err)
	}
	task, err := Imports.Enqueue(ctx, host, "people.csv")
	if err != nil {
		log.Fatal(err)
	}
	<-halfway
	status, err := Imports.Status(ctx, host, task.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.Percent, "percent")
	for _, phase := range status.Phases {
		fmt.Printf("%s: %s, %d percent\n", phase.Name, phase.State, phase.Percent)
	}
	var rows int
	if _, err := Imports.PhaseResult(ctx, host, task.ID, "read", &rows); err != nil {
		log.Fatal(err)
	}
	fmt.Println(rows, "rows were read")
	close(looked)
	fmt.Println(Imports.Wait(ctx, host, task.ID))
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 50 percent
	// read: done, 100 percent
	// index: running, 0 percent
	// 2000 rows were read
	// 2000 <nil>
}

package workerpool_test

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// A deploy changes the type of a pool's inputs while tasks wait.
func ExampleConfig_migrate() {
	older := workerpool.New(workerpool.Config[int, string]{Name: "greet", Version: "1"})
	newer := workerpool.New(workerpool.Config[string, string]{
		Name: "greet", Version: "2",
		Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) { return "hello " + t.In, nil },
		Migrate: func(from string, raw []byte) (string, error) {
			n, err := strconv.Atoi(string(raw)) // version 1 had the numbers of customers
			return fmt.Sprintf("customer %d", n), err
		},
	})
	dir, err := os.MkdirTemp("", "workerpool")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	h := must(object.Open(object.Options{Dir: dir}, older))
	task := must(older.Enqueue(ctx, h, 7))
	if err := h.Shutdown(ctx); err != nil {
		panic(err)
	}
	h = must(object.Open(object.Options{Dir: dir}, newer))
	defer h.Shutdown(context.Background())
	fmt.Println(newer.Wait(ctx, h, task.ID))
	// Output: hello customer 7 <nil>
}

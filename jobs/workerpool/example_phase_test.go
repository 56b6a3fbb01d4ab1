package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Films are downloaded, cut and published. A task that fails, or is cut off by a crash,
// goes on with the phase that has no result yet.
var Films = workerpool.New(workerpool.Config[string, string]{
	Name:   "films",
	Phases: []string{"download", "cut", "publish"},
	Retry:  jobs.Retry{MaxAttempts: 5, Backoff: jobs.Constant(10 * time.Millisecond)},
	Work: func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
		file, err := workerpool.Phase(ctx, t, "download", func(context.Context) (string, error) {
			fmt.Println("downloads", t.In)
			return t.In + ".mov", nil
		})
		if err != nil {
			return "", err
		}
		scenes, err := workerpool.Phase(ctx, t, "cut", func(context.Context) (int, error) {
			fmt.Println("cuts", file, "in attempt", t.Attempt)
			if t.Attempt == 1 {
				return 0, errors.New("no scissors")
			}
			return 12, nil
		})
		if err != nil {
			return "", err
		}
		return workerpool.Phase(ctx, t, "publish", func(context.Context) (string, error) {
			return fmt.Sprint("films.example/", t.In, ": ", scenes, " scenes"), nil
		})
	},
})

// The second attempt gets the stored result of the download and does not download again.
func ExamplePhase() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "films") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Films)
	if err != nil {
		log.Fatal(err)
	}
	film, err := Films.Enqueue(ctx, host, "nosferatu")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(Films.Wait(ctx, host, film.ID))
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// downloads nosferatu
	// cuts nosferatu.mov in attempt 1
	// cuts nosferatu.mov in attempt 2
	// films.example/nosferatu: 12 scenes <nil>
}

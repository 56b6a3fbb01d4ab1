package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// Rounds looks at a meter four times, each in a generation of its own. The histories of the two
// before stay for a look back.
var Rounds = workflow.New[int, int]("round", workflow.Config{KeepGenerations: 2})

func init() {
	Rounds.Func(func(ctx *workflow.Context, round int) (int, error) {
		value, err := workflow.Step(ctx, fmt.Sprintf("read %d", round), func(context.Context) (int, error) { return 100 * round, nil })
		if err != nil || round == 4 {
			return value, err
		}
		if err := workflow.Sleep(ctx, time.Millisecond); err != nil { // or a day
			return 0, err
		}
		return Rounds.ContinueAs(ctx, round+1)
	})
}

// openRounds opens a host in a directory of its own; a program names one that stays.
func openRounds() (host *object.Host, end func()) {
	dir, err := os.MkdirTemp("", "rounds")
	if err != nil {
		log.Fatal(err)
	}
	host, err = object.Open(object.Options{Dir: dir}, Rounds)
	if err != nil {
		log.Fatal(err)
	}
	return host, func() {
		if err := host.Shutdown(context.Background()); err != nil {
			log.Fatal(err)
		}
		os.RemoveAll(dir)
	}
}

// HistoryOf reads the history of an earlier generation, as long as it is kept.
func ExampleWorkflow_HistoryOf() {
	ctx := context.Background()
	host, end := openRounds()
	defer end()
	if _, err := Rounds.Start(ctx, host, "meter", 1); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Rounds.Wait(ctx, host, "meter"))
	for generation := range uint64(4) {
		entries, err := Rounds.HistoryOf(ctx, host, "meter", generation, 0, 0)
		if errors.Is(err, jobs.ErrNotFound) {
			fmt.Println(generation, "is not kept")
			continue
		}
		for _, e := range entries {
			if e.Kind == "step" {
				fmt.Println(generation, e.Name, string(e.Value))
			}
		}
	}
	// Output:
	// 400 <nil>
	// 0 is not kept
	// 1 read 2 200
	// 2 read 3 300
	// 3 read 4 400
}

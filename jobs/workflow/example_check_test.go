package workflow_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// newVisits is a workflow as two deploys have it: the second has renamed a step.
func newVisits(step string) *workflow.Workflow[string, string] {
	visits := workflow.New[string, string]("visit", workflow.Config{})
	visits.Func(func(ctx *workflow.Context, guest string) (string, error) {
		if _, err := workflow.Step(ctx, step, func(context.Context) (string, error) { return guest, nil }); err != nil {
			return "", err
		}
		return "over", workflow.Sleep(ctx, 24*time.Hour)
	})
	return visits
}

// leaveVisit leaves a run that sleeps in a store.
func leaveVisit(ctx context.Context, dir string) error {
	visits := newVisits("welcome")
	host, err := object.Open(object.Options{Dir: dir}, visits)
	if err != nil {
		return err
	}
	if _, err := visits.Start(ctx, host, "anna", "anna"); err != nil {
		return err
	}
	for e, err := range host.Watch(ctx, visits.ID("anna"), 0) {
		if err != nil {
			return err
		}
		if e.Kind == workflow.EventSuspended {
			break
		}
	}
	return host.Shutdown(ctx)
}

// Check repeats the runs of a copy of the store with the code of the next deploy. It runs
// no step and writes nothing.
func ExampleWorkflow_Check() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "visits") // a copy of the store
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := leaveVisit(ctx, dir); err != nil {
		log.Fatal(err)
	}
	store, err := storage.Open(storage.Options{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	for _, step := range []string{"welcome", "greet"} {
		stuck := 0
		for d, err := range newVisits(step).Check(ctx, store, workflow.CheckOptions{}) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("%s: %v\n", d.ID, d.Err)
			stuck++
		}
		fmt.Println(step, "leaves stuck:", stuck)
	}
	// Output:
	// welcome leaves stuck: 0
	// anna: workflow: diverged: the code does not follow the history: entry 1 of the function is step "welcome", the code asked for step "greet". If "greet" is new, guard it with workflow.Patched(ctx, "…"); if "welcome" was renamed, give it back its name.
	// greet leaves stuck: 1
}

package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// A run shows its stage, and waits three days for an answer.
var (
	Answered = workflow.NewSignal[string]("answered")
	Stage    = workflow.NewVar[string]("stage")
	Surveys  = workflow.New[string, string]("survey", workflow.Config{Signals: workflow.Signals{Answered}})
)

func init() {
	Surveys.Func(func(ctx *workflow.Context, question string) (string, error) {
		Stage.Set(ctx, "asked: "+question)
		answer, err := Answered.Wait(ctx, 72*time.Hour) // on disk alone: no goroutine, no memory
		if errors.Is(err, workflow.ErrTimeout) {
			return "no answer", nil
		}
		return answer, err
	})
}

// openSurveys opens a host in a directory of its own; a program names one that stays.
func openSurveys() (host *object.Host, end func()) {
	dir, err := os.MkdirTemp("", "surveys")
	if err != nil {
		log.Fatal(err)
	}
	host, err = object.Open(object.Options{Dir: dir}, Surveys)
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

// A signal is stored when Send returns, and the run takes it once.
func ExampleSignal_Send() {
	ctx := context.Background()
	host, end := openSurveys()
	defer end()
	if _, err := Surveys.Start(ctx, host, "7", "Tea?"); err != nil {
		log.Fatal(err)
	}
	if err := Answered.Send(ctx, host, Surveys, "7", "yes", object.Idempotent("mail-12", time.Hour)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Surveys.Wait(ctx, host, "7"))
	fmt.Println(Stage.Get(ctx, host, Surveys, "7"))
	err := Answered.Send(ctx, host, Surveys, "7", "no")
	fmt.Println(errors.Is(err, workflow.ErrEnded))
	// Output:
	// yes <nil>
	// asked: Tea? true <nil>
	// true
}

// The verbs of a run. A run that waits is asked for its status like one that executes.
func ExampleWorkflow_Status() {
	ctx := context.Background()
	host, end := openSurveys()
	defer end()
	if _, err := Surveys.Start(ctx, host, "8", "Coffee?"); err != nil {
		log.Fatal(err)
	}
	for e, err := range host.Watch(ctx, Surveys.ID("8"), 0) { // a program need not wait for that
		if err != nil {
			log.Fatal(err)
		}
		if e.Kind == workflow.EventSuspended {
			break
		}
	}
	st, err := Surveys.Status(ctx, host, "8")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("waits for", st.Waits[0].Kind, st.Waits[0].Name)
	if err := Surveys.Pause(ctx, host, "8", "holidays", time.Time{}); err != nil {
		log.Fatal(err)
	}
	if err := Surveys.Resume(ctx, host, "8"); err != nil {
		log.Fatal(err)
	}
	if err := Surveys.Cancel(ctx, host, "8", "no interest"); err != nil {
		log.Fatal(err)
	}
	_, err = Surveys.Wait(ctx, host, "8")
	fmt.Println(errors.Is(err, workflow.ErrCancelled), Surveys.Terminate(ctx, host, "8", "tidy up"))
	// Output:
	// waits for signal answered
	// true <nil>
}

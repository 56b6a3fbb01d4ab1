package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// docs/OPERATIONS.md shows the code of this file.

// paper is whether the printer has paper.
var paper bool

// Letters is a pool of tasks that fail for good while there is no paper.
var Letters = workerpool.New(workerpool.Config[string, string]{
	Name: "letters",
	Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) { return t.In, printed() },
})

// Reports is a job that is failed by a run that is given up.
var Reports = continuous.New(continuous.Config[int]{
	Name: "report", Exhausted: jobs.Fail,
	Run: func(context.Context, *continuous.Run[int]) error { return printed() },
})

// Bell is an object with an alarm that fails for good while there is no paper.
type Bell struct{ st *object.State }

func (b *Bell) Set(ctx context.Context, _ struct{}) (struct{}, error) {
	return struct{}{}, b.st.SetAlarm(ctx, b.st.Now())
}

func (b *Bell) Alarm(context.Context, object.AlarmInfo) error { return printed() }

var (
	// died gets the dead letters of alarms.
	died  = make(chan object.DeadLetter, 1)
	Bells = object.Define("bell", func(_ context.Context, st *object.State) (*Bell, error) { return &Bell{st}, nil },
		object.ClassOptions{OnDeadLetter: func(_ context.Context, d object.DeadLetter) { died <- d }})
	Set = object.Handle(Bells, "set", (*Bell).Set)
)

func printed() error {
	if !paper {
		return jobs.Permanent(errors.New("no paper"))
	}
	return nil
}

// deadTasks prints the dead letters of a pool, in pages of 100, and makes all pending again.
func deadTasks(ctx context.Context, host *object.Host) error {
	var after workerpool.TaskID // the zero value begins with the first
	for {
		page, err := Letters.DeadLetters(ctx, host, after, 100)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, d := range page {
			fmt.Println("dead:", d.ID, d.In, d.Reason, "failures:", len(d.Failures))
			after = d.ID
		}
	}
	n, err := Letters.ReplayAll(ctx, host) // or Replay with ids; DiscardDead drops them
	fmt.Println("replayed:", n)
	return err
}

// failedJobs looks for failed jobs of one class, in pages of 100, and lets them go on.
func failedJobs(ctx context.Context, host *object.Host) error {
	after := ""
	for {
		page, err := host.Objects(ctx, "report", object.ObjectsOptions{Label: jobs.Failed.Label(), After: after, Limit: 100})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, o := range page {
			after = o.ID.Name
			status, err := Reports.Status(ctx, host, o.ID.Name)
			if err != nil {
				return err
			}
			fmt.Println("failed:", o.ID.Name, status.Meta.LastError)
			if err := Reports.Resume(ctx, host, o.ID.Name); err != nil {
				return err
			}
		}
	}
}

// deadWork prints all work that is not tried any more, and replays the part that is not a
// job's.
func deadWork(ctx context.Context, host *object.Host) error {
	for o := (object.DeadLettersOptions{}); ; { // or those of a class, a kind, an error or a time
		page, err := host.DeadLetters(ctx, o)
		if err != nil {
			return err
		}
		for _, d := range page.Letters {
			fmt.Println("dead:", d.Kind, "of", d.ID, d.LastError)
			err := host.ReplayDeadLetter(ctx, d.ID, d.Seq) // or DiscardDeadLetter
			if errors.Is(err, object.ErrUseVerb) {
				fmt.Printf("use %s for %s\n", d.Verb, d.Data)
			} else if err != nil {
				return err
			}
		}
		if o.After = page.Next; len(o.After) == 0 {
			return nil
		}
	}
}

// backUp copies the store of a running host to a new directory, and checks the whole copy.
func backUp(ctx context.Context, host *object.Host, to string) error {
	if err := host.Store().Checkpoint(ctx, to); err != nil {
		return err
	}
	findings, err := storage.Verify(ctx, storage.Options{Dir: to}, storage.Verification{})
	fmt.Println("findings in the copy:", findings)
	return err
}

// An operator finds the work that has failed for good, and lets it go on once the cause
// is gone.
func Example_operations() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "letters") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Letters, Reports, Bells)
	if err != nil {
		log.Fatal(err)
	}
	task, err := Letters.Enqueue(ctx, host, "to bob")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(Letters.Wait(ctx, host, task.ID))
	if _, err := Reports.Start(ctx, host, "monthly", 0); err != nil {
		log.Fatal(err)
	}
	for e, err := range host.Watch(ctx, Reports.ID("monthly"), 0) {
		if err != nil {
			log.Fatal(err)
		}
		if e.Kind == jobs.EventExhausted {
			break
		}
	}
	if _, err := Set.Call(ctx, host, "door", struct{}{}); err != nil {
		log.Fatal(err)
	}
	<-died

	paper = true
	for _, look := range []func(context.Context, *object.Host) error{deadWork, deadTasks, failedJobs} {
		if err := look(ctx, host); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(Letters.Wait(ctx, host, task.ID))
	if err := backUp(ctx, host, dir+".copy"); err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir + ".copy")
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// letters: task 0-1: workerpool: task is dead: no paper
	// dead: alarm of bell/door no paper
	// dead: task of letters/0 no paper
	// use Pool.Replay or Pool.DiscardDead for {"task":"0-1"}
	// dead: 0-1 to bob permanent failures: 1
	// replayed: 1
	// failed: monthly no paper
	// to bob <nil>
	// findings in the copy: 0
}

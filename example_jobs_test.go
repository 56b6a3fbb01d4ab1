package holdfast_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Mail is the input of a task.
type Mail struct{ To, Text string }

// Mails is a durable queue. A task is on disk when Enqueue returns.
var Mails = workerpool.New(workerpool.Config[Mail, string]{
	Name: "mails", Concurrency: 4, Retry: jobs.Retry{MaxAttempts: 5},
	Work: func(ctx context.Context, t *workerpool.Task[Mail]) (string, error) {
		return send(ctx, t.In, t.OutsideKey) // the key is the same in each attempt
	},
})

// Polls runs each half hour. The state is stored when Run returns nil.
var Polls = continuous.New(continuous.Config[int]{
	Name: "poll", Schedule: jobs.Every(30 * time.Minute),
	Run: func(ctx context.Context, run *continuous.Run[int]) (err error) {
		run.State, err = fetch(ctx, run.ID, run.State)
		return err
	},
})

// send stands for a request that sends a mail. The other side drops a second one with
// the same key.
func send(_ context.Context, m Mail, _ string) (string, error) { return "sent to " + m.To, nil }

// fetch stands for a request that reads a feed from a position on, and returns the next.
func fetch(_ context.Context, _ string, from int) (int, error) { return from + 2, nil }

// A pool and a continuous job are defined once, at package level, and given to Open.
func Example_jobs() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "jobs") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Mails, Polls)
	if err != nil {
		log.Fatal(err)
	}
	task, err := Mails.Enqueue(ctx, host, Mail{"bob", "Hello"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = Polls.Start(ctx, host, "news", 0) // a job that is there stays as it is
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(Mails.Wait(ctx, host, task.ID))
	for e, err := range host.Watch(ctx, Polls.ID("news"), 0) { // the first run begins at once
		if err != nil {
			log.Fatal(err)
		}
		if e.Kind == jobs.EventSuccess {
			break
		}
	}
	fmt.Println(Polls.State(ctx, host, "news"))
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// sent to bob <nil>
	// 2 <nil>
}

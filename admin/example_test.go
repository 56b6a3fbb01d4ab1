package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A tool resumes all paused jobs of a program, of whichever types they are.
func ExampleAdmin_Jobs() {
	feeds := continuous.New(continuous.Config[string]{
		Name: "feed", StartPaused: true,
		Run: func(context.Context, *continuous.Run[string]) error { return nil },
	})
	definitions := []object.Definition{feeds}
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, definitions...)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, id := range []string{"news", "weather"} {
		if _, err := feeds.Start(ctx, host, id, "https://example.com/"+id); err != nil {
			log.Fatal(err)
		}
	}

	a := admin.Live(host, definitions...)
	for o := (admin.JobsOptions{Label: "paused"}); ; {
		page, err := a.Jobs(ctx, o)
		if err != nil {
			log.Fatal(err)
		}
		for _, job := range page.Jobs {
			_, err := a.Do(ctx, job.ID, "resume", nil)
			fmt.Println(job.Kind, job.ID, err)
		}
		if o.After = page.Next; page.Next == "" {
			break
		}
	}
	state, err := a.View(ctx, feeds.ID("news"), "state", nil)
	fmt.Println(string(state), err)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// continuous feed/news <nil>
	// continuous feed/weather <nil>
	// "https://example.com/news" <nil>
}

// An operator replays all dead tasks of one error, once the cause is mended.
func ExampleAdmin_Run() {
	mended := make(chan struct{})
	mails := workerpool.New(workerpool.Config[string, int]{
		Name: "mail", Partitions: 1,
		Work: func(_ context.Context, t *workerpool.Task[string]) (int, error) {
			select {
			case <-mended:
				return len(t.In), nil
			default:
				return 0, object.Permanent(errors.New("connection refused"))
			}
		},
	})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}, Logger: slog.New(slog.DiscardHandler)}, mails)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	var last workerpool.TaskID
	for _, to := range []string{"anna", "bob"} {
		ref, err := mails.Enqueue(ctx, host, to)
		if err != nil {
			log.Fatal(err)
		}
		_, err = mails.Wait(ctx, host, ref.ID)
		fmt.Println(errors.Is(err, workerpool.ErrFailed))
		last = ref.ID
	}

	close(mended)
	a := admin.Live(host, mails)
	count, err := a.CountDead(ctx, true, object.DeadLettersOptions{Error: "connection refused"})
	fmt.Println(count.Matches, err)
	progress, err := a.Run(ctx, count.Token, nil)
	fmt.Println(progress.Done, err)
	fmt.Println(mails.Wait(ctx, host, last))
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// true
	// true
	// 2 <nil>
	// 2 <nil>
	// 3 <nil>
}

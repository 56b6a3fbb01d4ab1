package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A program replays all dead tasks in parts, and stores how far it is between them.
func ExampleAdmin_Step() {
	var mended atomic.Bool
	mails := workerpool.New(workerpool.Config[string, int]{
		Name: "mail",
		Work: func(_ context.Context, t *workerpool.Task[string]) (int, error) {
			if !mended.Load() {
				return 0, object.Permanent(errors.New("connection refused"))
			}
			return len(t.In), nil
		},
	})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}, Logger: slog.New(slog.DiscardHandler)}, mails)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, to := range []string{"anna", "bob"} {
		ref, err := mails.Enqueue(ctx, host, to)
		if err != nil {
			log.Fatal(err)
		}
		_, err = mails.Wait(ctx, host, ref.ID)
		fmt.Println(errors.Is(err, workerpool.ErrFailed))
	}

	mended.Store(true)
	a := admin.Live(host, mails)
	count, err := a.CountDead(ctx, true, object.DeadLettersOptions{Class: "mail"})
	if err != nil {
		log.Fatal(err)
	}
	verb, err := a.Take(count.Token)
	for err == nil && !verb.Ended {
		verb, err = a.Step(ctx, verb, nil)
		stored, _ := json.Marshal(verb) // for another process, if this one ends here
		_ = json.Unmarshal(stored, &verb)
	}
	fmt.Println(verb.Progress.Done, err)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// true
	// true
	// 2 <nil>
}

package admin_test

import (
	"context"
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

// An operator replays one dead task and gives another one up.
func ExampleAdmin_ReplayDead() {
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
	var first workerpool.TaskID
	for i, to := range []string{"anna", "bob"} {
		ref, err := mails.Enqueue(ctx, host, to)
		if err != nil {
			log.Fatal(err)
		}
		_, err = mails.Wait(ctx, host, ref.ID)
		fmt.Println(errors.Is(err, workerpool.ErrFailed))
		if i == 0 {
			first = ref.ID
		}
	}

	mended.Store(true)
	a := admin.Live(host, mails)
	dead, err := host.DeadLetters(ctx, object.DeadLettersOptions{Class: "mail"})
	if err != nil {
		log.Fatal(err)
	}
	one, two := dead.Letters[0], dead.Letters[1]
	fmt.Println(a.ReplayDead(ctx, one.ID, one.Seq, false))
	fmt.Println(a.DiscardDead(ctx, two.ID, two.Seq))
	fmt.Println(mails.Wait(ctx, host, first))
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// true
	// true
	// <nil>
	// <nil>
	// 4 <nil>
}

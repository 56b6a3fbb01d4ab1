package object_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Inbox keeps the letters that reach it.
type Inbox struct{ state *object.State }

var (
	inboxes = object.Define("inbox", func(_ context.Context, st *object.State) (*Inbox, error) { return &Inbox{st}, nil })
	deliver = object.Handle(inboxes, "deliver", func(b *Inbox, ctx context.Context, text string) (bool, error) {
		return true, b.state.Storage().Put(ctx, "text", text)
	})
	remember = object.Handle(inboxes, "remind", func(b *Inbox, ctx context.Context, text string) (bool, error) {
		return true, deliver.Send(ctx, b.state, "ada", text, object.After(24*time.Hour))
	})
)

// A message that waits is taken out of the way: it becomes a dead letter, which can be
// replayed or discarded.
func ExampleHost_BuryMessage() {
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, inboxes)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := remember.Call(ctx, host, "charles", "the engine is late"); err != nil {
		log.Fatal(err)
	}
	ada := inboxes.ID("ada")
	in, err := host.Inspect(ctx, ada)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range in.Messages {
		fmt.Println(m.Method, "from", m.From)
		if err := host.BuryMessage(ctx, ada, m.Seq); err != nil {
			log.Fatal(err)
		}
	}
	page, err := host.DeadLetters(ctx, object.DeadLettersOptions{Kind: object.DeadMessage})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range page.Letters {
		fmt.Println("dead:", d.ID, d.Method, string(d.Arg), d.Reason)
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// deliver from inbox/charles
	// dead: inbox/ada deliver "the engine is late" buried
}

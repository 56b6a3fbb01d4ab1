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

// Novel is a novel of a library.
type Novel struct{ state *object.State }

// lend notes which reader has the novel, and reminds the reader of it in two weeks.
func (n *Novel) lend(ctx context.Context, reader string) (struct{}, error) {
	if err := n.state.Storage().Put(ctx, "reader", reader); err != nil {
		return struct{}{}, err
	}
	return struct{}{}, remind.Send(ctx, n.state, reader, n.state.Name(), object.After(14*24*time.Hour))
}

// Reader is a reader of the library.
type Reader struct{}

// remind tells the reader of a novel.
func (r *Reader) remind(_ context.Context, novel string) (struct{}, error) {
	fmt.Println("please return", novel)
	return struct{}{}, nil
}

var (
	novels  = object.Define("novel", func(_ context.Context, st *object.State) (*Novel, error) { return &Novel{st}, nil })
	readers = object.Define("reader", func(context.Context, *object.State) (*Reader, error) { return &Reader{}, nil })
	lend    = object.Handle(novels, "lend", (*Novel).lend)
	remind  = object.Handle(readers, "remind", (*Reader).remind)
)

// A delayed message waits in the store for its time, and only a send can be delayed.
func ExampleAfter() {
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, novels, readers)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := lend.Call(ctx, host, "Emma", "bob"); err != nil {
		log.Fatal(err)
	}
	in, err := host.Inspect(ctx, readers.ID("bob"))
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range in.Messages {
		fmt.Println(m.Method, "from", m.From, "in", time.Until(m.Due).Round(time.Hour))
	}
	_, err = remind.Call(ctx, host, "bob", "Emma", object.After(time.Hour))
	fmt.Println(err)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// remind from novel/Emma in 336h0m0s
	// reader/bob: object: a call cannot have the option After: use Method.Send, or an Outbox as the caller
}

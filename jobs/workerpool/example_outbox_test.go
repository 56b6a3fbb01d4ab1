package workerpool_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Desk takes orders.
type Desk struct{ st *object.State }

// place stores an order, and sends the task that confirms it. Both are one commit.
func (d *Desk) place(ctx context.Context, order string) (sent bool, err error) {
	if err := d.st.Storage().Put(ctx, "order/"+order, "new"); err != nil {
		return false, err
	}
	task, err := confirmations.Enqueue(ctx, d.st.Outbox(), order, workerpool.Key("mail"))
	return task.Sent, err
}

var (
	confirmed = make(chan string)
	desks     = object.Define("desk", func(_ context.Context, st *object.State) (*Desk, error) { return &Desk{st}, nil })
	place     = object.Handle(desks, "place", (*Desk).place)

	confirmations = workerpool.New(workerpool.Config[string, bool]{
		Name: "confirmations",
		Work: func(_ context.Context, t *workerpool.Task[string]) (bool, error) {
			confirmed <- t.In // a program would send a mail here
			return true, nil
		},
	})
)

// With the Outbox of a State a task is part of the turn's commit: it is in the pool if, and
// only if, the order is stored.
func ExamplePool_Enqueue_outbox() {
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, desks, confirmations)
	if err != nil {
		log.Fatal(err)
	}
	sent, err := place.Call(ctx, host, "front", "4711")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sent:", sent)
	fmt.Println("confirmed:", <-confirmed)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// sent: true
	// confirmed: 4711
}

package object_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Order is an order of a shop. Its label is its state.
type Order struct{ state *object.State }

// move gives the order another state.
func (o *Order) move(ctx context.Context, to string) (from string, err error) {
	driver := o.state.Driver()
	if from, err = driver.Label(ctx); err != nil {
		return "", err
	}
	if err := o.state.Storage().Put(ctx, "state", to); err != nil {
		return "", err
	}
	return from, driver.SetLabel(ctx, to)
}

var (
	orders = object.Define("order", func(_ context.Context, st *object.State) (*Order, error) { return &Order{st}, nil })
	move   = object.Handle(orders, "move", (*Order).move)
)

// A label lets a program find the objects of a class that are in one state, without a look
// at the others.
func ExampleHost_Objects_label() {
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, orders)
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range [][2]string{{"1", "paid"}, {"2", "open"}, {"3", "paid"}, {"3", "shipped"}} {
		from, err := move.Call(ctx, host, step[0], step[1])
		if err != nil {
			log.Fatal(err)
		}
		if from != "" {
			fmt.Println("order", step[0], "was", from)
		}
	}

	paid, err := host.Objects(ctx, "order", object.ObjectsOptions{Label: "paid", Limit: 100})
	if err != nil {
		log.Fatal(err)
	}
	for _, order := range paid {
		fmt.Println("paid:", order.ID)
	}
	counts, _ := host.Labels("order")
	fmt.Println("all:", counts)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// order 3 was paid
	// paid: order/1
	// all: map[open:1 paid:1 shipped:1]
}

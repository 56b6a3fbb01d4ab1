package object_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Bakery is an object that bakes slowly.
type Bakery struct{ loaves int }

var (
	bakeries = object.Define("bakery", func(context.Context, *object.State) (*Bakery, error) { return &Bakery{}, nil })
	// The handler of bake closes baking, and waits until the bread is done.
	baking, done = make(chan struct{}), make(chan struct{})
	bake         = object.Handle(bakeries, "bake", func(b *Bakery, _ context.Context, n int) (int, error) {
		close(baking)
		<-done
		b.loaves += n
		return b.loaves, nil
	})
)

// A caller leaves while the handler runs. The handler goes on, and a repeat with the same key
// gets its answer.
func ExampleDetached() {
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, bakeries)
	if err != nil {
		log.Fatal(err)
	}
	order := object.Idempotent("order 17", time.Hour)
	waiting, leave := context.WithCancel(ctx)
	go func() {
		<-baking
		leave()
	}()
	_, err = bake.Call(waiting, host, "corner", 3, order, object.Detached())
	fmt.Println("unknown:", errors.Is(err, object.ErrUnknown))

	close(done)
	loaves, err := bake.Call(ctx, host, "corner", 3, order)
	fmt.Println(loaves, err)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// unknown: true
	// 3 <nil>
}

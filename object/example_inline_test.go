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

// A server answers its client in time, though the handler keeps the goroutine of the request.
func ExampleInline() {
	answered := make(chan struct{})
	kitchens := object.Define("kitchen", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil })
	cook := object.Handle(kitchens, "cook", func(_ *struct{}, _ context.Context, dish string) (string, error) {
		if dish == "stew" {
			<-answered // it takes longer than the client waits
		}
		return dish, nil
	})
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, kitchens)
	if err != nil {
		log.Fatal(err)
	}
	leave := object.Inline(func(err error) {
		fmt.Println("to the client:", err)
		close(answered)
	})
	fmt.Println(cook.Call(ctx, host, "main", "soup", object.Detached(), leave)) // it brings the object into memory

	waiting, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	fmt.Println(cook.Call(waiting, host, "main", "stew", object.Detached(), leave))
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// soup <nil>
	// to the client: kitchen/main: object: outcome is unknown: context deadline exceeded
	// stew <nil>
}

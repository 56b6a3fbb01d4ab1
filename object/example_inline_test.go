package object_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A server answers its client in time, though the handler keeps the goroutine of the request.
func ExampleInline() {
	late := make(chan struct{})
	kitchens := object.Define("kitchen", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil })
	cook := object.Handle(kitchens, "cook", func(_ *struct{}, _ context.Context, dish string) (string, error) {
		if dish == "stew" {
			<-late // it takes longer than the client waits
		}
		return dish, nil
	})
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, kitchens)
	if err != nil {
		log.Fatal(err)
	}
	request := func(dish string, limit time.Duration) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		var once sync.Once
		answer := func(err error) { // the client gets one answer: at the deadline, or when the call returns
			once.Do(func() {
				fmt.Printf("%s in time: %t\n", dish, err == nil)
				if errors.Is(err, context.DeadlineExceeded) {
					close(late)
				}
			})
		}
		_, err := cook.Call(ctx, host, "main", dish, object.Detached(), object.Inline(answer))
		answer(err)
	}
	request("soup", time.Hour) // it brings the object into memory
	request("stew", 20*time.Millisecond)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// soup in time: true
	// stew in time: false
}

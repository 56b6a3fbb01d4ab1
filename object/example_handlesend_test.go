package object_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/object"
)

// relay is an object that passes values on.
type relay struct{ st *object.State }

// Relays is a kind of object with a type parameter, whose objects send each other values.
type Relays[V any] struct {
	*object.Class[relay]
	// Pass has the object called name send a value to the object "last".
	Pass func(ctx context.Context, from object.Caller, name string, v V, opts ...object.CallOption) (struct{}, error)
}

// NewRelays returns a kind whose objects report the values that they receive.
func NewRelays[V any](class string, received func(V)) *Relays[V] {
	c := object.Define(class, func(_ context.Context, st *object.State) (*relay, error) { return &relay{st}, nil })
	send := object.HandleSend(c, "receive", func(_ *relay, _ context.Context, v V) (struct{}, error) {
		received(v)
		return struct{}{}, nil
	})
	return &Relays[V]{c, object.HandleCall(c, "pass", func(r *relay, ctx context.Context, v V) (struct{}, error) {
		return struct{}{}, send(ctx, r.st, "last", v) // the message is part of this turn's commit
	})}
}

func ExampleHandleSend() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "relays") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	arrived := make(chan int)
	numbers := NewRelays("numbers", func(n int) { arrived <- n })
	host, err := object.Open(object.Options{Dir: dir}, numbers)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := numbers.Pass(ctx, host, "first", 42); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-arrived)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: 42
}

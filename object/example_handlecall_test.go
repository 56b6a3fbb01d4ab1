package object_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/object"
)

// slot is an object that holds one value of any type.
type slot struct{ st *object.State }

// Slots is a kind of object with a type parameter. Each type argument compiles its generic code again, so Slots
// contains only what needs the type.
type Slots[V any] struct {
	*object.Class[slot]
	// Swap stores a value and returns the one before.
	Swap func(ctx context.Context, from object.Caller, name string, v V, opts ...object.CallOption) (V, error)
}

func NewSlots[V any](class string) *Slots[V] {
	c := object.Define(class, func(_ context.Context, st *object.State) (*slot, error) { return &slot{st}, nil })
	return &Slots[V]{c, object.HandleCall(c, "swap", func(s *slot, ctx context.Context, v V) (old V, err error) {
		if _, err := s.st.Storage().GetInto(ctx, "value", &old); err != nil {
			return old, err
		}
		return old, s.st.Storage().Put(ctx, "value", v)
	})}
}

func ExampleHandleCall() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "slots") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	words := NewSlots[string]("words")
	host, err := object.Open(object.Options{Dir: dir}, words)
	if err != nil {
		log.Fatal(err)
	}
	for _, word := range []string{"tea", "coffee"} {
		old, err := words.Swap(ctx, host, "menu", word)
		fmt.Printf("%q %v\n", old, err)
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// "" <nil>
	// "tea" <nil>
}

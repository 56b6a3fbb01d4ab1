package object_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Till is the till of a shop.
type Till struct{ total int }

// pay adds an amount.
func (t *Till) pay(_ context.Context, amount int) (int, error) {
	t.total += amount
	return t.total, nil
}

var (
	tills   = object.Define("till", func(context.Context, *object.State) (*Till, error) { return &Till{}, nil })
	payTill = object.Handle(tills, "pay", (*Till).pay)
)

// A server lists the methods that it could offer, and calls one of them by its name. The
// methods of job types are not among those that it may call so.
func ExampleHost_Classes() {
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, tills)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range host.Classes() {
		for _, m := range c.Methods {
			fmt.Printf("%s.%s(%v) %v, by name: %v\n", c.Name, m.Name, m.Argument, m.Answer, !c.Options.Internal)
		}
	}
	answer, err := host.CallBytes(ctx, "till", "north", "pay", []byte("499"))
	fmt.Println(string(answer), err)
	_, err = host.CallBytes(ctx, "till", "north", "pay", []byte(`"much"`))
	fmt.Println(errors.Is(err, object.ErrBadArgument))
	total, err := payTill.Call(ctx, host, "north", 1)
	fmt.Println(total, err)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// till.pay(int) int, by name: true
	// 499 <nil>
	// true
	// 500 <nil>
}

// The definition of an internal class can call its methods by name, and the host cannot.
func ExampleClass_CallBytes() {
	ctx := context.Background()
	safes := object.Define("safe", func(context.Context, *object.State) (*Till, error) { return &Till{}, nil },
		object.ClassOptions{Internal: true})
	object.Handle(safes, "pay", (*Till).pay)
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, safes)
	if err != nil {
		log.Fatal(err)
	}
	_, err = host.CallBytes(ctx, "safe", "north", "pay", []byte("499"))
	fmt.Println(errors.Is(err, object.ErrInternalMethod))
	answer, err := safes.CallBytes(ctx, host, "north", "pay", []byte("499"))
	fmt.Println(string(answer), err)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// true
	// 499 <nil>
}

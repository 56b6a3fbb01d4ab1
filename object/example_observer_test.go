package object_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Outline is an Observer that prints each operation, with those of its handler below it. One that
// is used by several callers at a time needs a mutex.
type Outline struct{ indent string }

type outlineKey struct{}

// Begin prints the operation. The context that it returns comes to the operations of its handler.
func (p Outline) Begin(ctx context.Context, op object.Operation) (context.Context, object.Observation) {
	if outer, ok := ctx.Value(outlineKey{}).(Outline); ok {
		p.indent = outer.indent + "  "
	}
	fmt.Println(p.indent+op.Kind, op.ID, op.Method)
	return context.WithValue(ctx, outlineKey{}, p), p
}

func (p Outline) TurnBegan()      {}
func (p Outline) TurnEnded(error) {}
func (p Outline) Ended(err error) { fmt.Println(p.indent+"ended with", err) }

type Desk struct{ st *object.State }

var (
	Desks = object.Define("desk", func(_ context.Context, st *object.State) (*Desk, error) { return &Desk{st}, nil })
	Stamp = object.Handle(Desks, "stamp", func(d *Desk, ctx context.Context, form string) (struct{}, error) {
		return struct{}{}, d.st.Storage().Put(ctx, form, "stamped")
	})
	Accept = object.Handle(Desks, "accept", func(d *Desk, ctx context.Context, form string) (struct{}, error) {
		return Stamp.Call(ctx, d.st, "stamps", form)
	})
)

// An Observer sees a call, and the call that its handler makes, as a tracer does.
func ExampleObserver() {
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}, Observer: Outline{}}, Desks)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := Accept.Call(ctx, host, "front", "A38"); err != nil {
		log.Fatal(err)
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// call desk/front accept
	//   call desk/stamps stamp
	//   ended with <nil>
	// ended with <nil>
}

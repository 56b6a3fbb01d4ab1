package object_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Printer is an object that prints slowly.
type Printer struct{}

var (
	printers = object.Define("printer", func(context.Context, *object.State) (*Printer, error) { return &Printer{}, nil })
	// The handler of print closes printing, and waits for the tray to be filled.
	printing, filled = make(chan struct{}), make(chan struct{})
	printDocument    = object.Handle(printers, "print", func(*Printer, context.Context, string) (struct{}, error) {
		close(printing)
		<-filled
		return struct{}{}, nil
	})
)

// A call does not answer. Explain says why, without a turn of the object.
func ExampleHost_Explain() {
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, printers)
	if err != nil {
		log.Fatal(err)
	}
	printed := make(chan error)
	go func() {
		_, err := printDocument.Call(ctx, host, "first floor", "a letter")
		printed <- err
	}()
	<-printing

	why, err := host.Explain(ctx, printers.ID("first floor"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("turn of", why.Turn.Method)
	fmt.Println("calls that wait:", why.Mailbox.Calls, "of at most", why.Mailbox.Limit)

	close(filled)
	fmt.Println("printed:", <-printed)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// turn of print
	// calls that wait: 0 of at most 1024
	// printed: <nil>
}

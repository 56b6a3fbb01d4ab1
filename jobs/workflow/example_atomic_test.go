package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// Invoices draws numbers, and has another workflow print each invoice.
var (
	Prints   = workflow.New[string, string]("print", workflow.Config{})
	Invoices = workflow.New[string, string]("invoice", workflow.Config{})
)

func init() {
	Prints.Func(func(_ *workflow.Context, text string) (string, error) { return "printed " + text, nil })
	Invoices.Func(func(ctx *workflow.Context, customer string) (string, error) {
		// One batch has the row, the message that starts the print, and the entry of the
		// history: all of it, once.
		return workflow.Atomic(ctx, "number", func(ctx context.Context, tx *workflow.Tx) (string, error) {
			invoice := "invoice 1 of " + customer
			if err := tx.Put(ctx, "1", []byte(customer)); err != nil {
				return "", err
			}
			_, err := Prints.Start(ctx, tx.Outbox(), "1", invoice)
			return invoice, err
		})
	})
}

// openInvoices opens a host in a directory of its own; a program names one that stays.
func openInvoices() (host *object.Host, end func()) {
	dir, err := os.MkdirTemp("", "invoices")
	if err != nil {
		log.Fatal(err)
	}
	host, err = object.Open(object.Options{Dir: dir}, Invoices, Prints)
	if err != nil {
		log.Fatal(err)
	}
	return host, func() {
		if err := host.Shutdown(context.Background()); err != nil {
			log.Fatal(err)
		}
		os.RemoveAll(dir)
	}
}

// Atomic changes the store alone, and does it exactly once.
func ExampleAtomic() {
	ctx := context.Background()
	host, end := openInvoices()
	defer end()
	if _, err := Invoices.Start(ctx, host, "7", "anna"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Invoices.Wait(ctx, host, "7"))
	for {
		printed, err := Prints.Wait(ctx, host, "1")
		if errors.Is(err, jobs.ErrNotFound) {
			continue // the message is under way
		}
		fmt.Println(printed, err)
		break
	}
	// Output:
	// invoice 1 of anna <nil>
	// printed invoice 1 of anna <nil>
}

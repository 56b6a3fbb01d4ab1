// Crashtest shows how to crash a program of one's own at every point where a crash can
// matter. Its job types are like those that users write: an invoice with two bugs in
// its first version, which docs/TESTING.md finds and fixes, and an outbox over the
// engine of package jobs. Their tests let the harness kill the process at each point of
// a scenario, and again in each recovery from that, and then check the stored state:
//
//	go test -v ./examples/crashtest
//
// The program itself issues an invoice, charges it a moment later, and mails a
// receipt. Kill it at any time and run it again: nothing is forgotten, and the bank
// is asked with the same key.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

const usage = `Crashtest issues an invoice, charges it two seconds later, and mails a receipt.
Kill it at any time and run it again: nothing is forgotten, and the bank is asked
with the same key. Its tests are the point of it:

  go test -v ./examples/crashtest

Usage:

  go run ./examples/crashtest [flags]

Flags:

  -data DIR   keep the store in DIR (default: %s)
  -h          print this help
`

func main() {
	log.SetFlags(0)
	log.SetPrefix("crashtest: ")
	dir := filepath.Join(os.TempDir(), "holdfast-crashtest")
	flag.Usage = func() { fmt.Fprintf(flag.CommandLine.Output(), usage, dir) }
	data := flag.String("data", dir, "")
	if flag.Parse(); flag.NArg() > 0 {
		log.Printf("unexpected argument %q (-h helps)", flag.Arg(0))
		os.Exit(2)
	}
	lunchtime(context.Background(), *data)
}

// lunchtime issues an invoice and waits for its charge and its receipt.
func lunchtime(ctx context.Context, dir string) {
	done := make(chan string, 100)
	mail := NewOutbox("mail", jobs.Retry{MaxAttempts: 5}, func(_ context.Context, key, message string) error {
		fmt.Printf("A mail goes out with the key %q: %s\n", key, message)
		done <- message
		return nil
	})
	var host *object.Host
	opened := make(chan struct{})
	invoices := NewInvoices(func(ctx context.Context, key string, cents int) error {
		<-opened // because a charge that an earlier run has left may be due at once
		fmt.Printf("The bank is asked for %d.%02d with the key %q.\n", cents/100, cents%100, key)
		_, err := mail.Post(ctx, host, "alice", key+" is paid", object.Idempotent(key, time.Hour))
		return err
	})
	host, err := object.Open(object.Options{Dir: dir}, invoices, mail)
	check(err)
	close(opened)
	name := time.Now().Format("lunch-150405")
	_, err = invoices.Issue.Call(ctx, host, name, Bill{Cents: 1250, In: 2 * time.Second})
	check(err)
	fmt.Printf("The invoice %s is stored in %s. It is charged in two seconds.\n", name, dir)
	await(done, name+" is paid")
	limited, cancel := context.WithTimeout(ctx, 10*time.Second) // without a limit it waits for work that never ends
	defer cancel()
	check(host.Shutdown(limited))
}

// await waits for a message; others may be left from an earlier run.
func await(done <-chan string, message string) {
	for <-done != message {
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Crashtest shows how to crash a program of one's own at every point where a crash
// can matter. Its job types are such as a user may write: an invoice, whose first
// version had two bugs that docs/TESTING.md finds and fixes, and an outbox over the
// engine of package jobs. Their tests let the harness kill the process at each point
// of a scenario, and in each recovery from that again, and look at what remains:
//
//	go test -v ./examples/crashtest
//
// The program itself issues an invoice, charges it a moment later, and mails a
// receipt. Kill it at any time and run it again: nothing is forgotten, and the bank
// is asked with the same key.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

func main() {
	ctx, dir := context.Background(), os.TempDir()+"/holdfast-crashtest"
	done := make(chan string, 100)
	invoices := NewInvoices(func(_ context.Context, key string, cents int) error {
		fmt.Printf("The bank is asked for %d.%02d with the key %q.\n", cents/100, cents%100, key)
		done <- key
		return nil
	})
	mail := NewOutbox("mail", jobs.Retry{MaxAttempts: 5}, func(_ context.Context, key, message string) error {
		fmt.Printf("A mail goes out with the key %q: %s\n", key, message)
		done <- message
		return nil
	})
	host, err := object.Open(object.Options{Dir: dir}, invoices, mail)
	check(err)
	name := time.Now().Format("lunch-150405")
	_, err = invoices.Issue.Call(ctx, host, name, Bill{Cents: 1250, In: 2 * time.Second})
	check(err)
	fmt.Printf("The invoice %s lies in %s. It is charged in two seconds.\n", name, dir)
	await(done, name)
	receipt := name + " is paid"
	_, err = mail.Post(ctx, host, "alice", receipt, object.Idempotent(name, time.Hour))
	check(err)
	await(done, receipt)
	limited, cancel := context.WithTimeout(ctx, 10*time.Second) // without a limit it waits for works that never end
	defer cancel()
	check(host.Shutdown(limited))
}

// await waits for what; other things may be left from an earlier run.
func await(done <-chan string, what string) {
	for <-done != what {
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Approval is a workflow that waits for a person: a request for money waits up to a year for
// the boss. Each command is a process of its own, and the request waits on disk meanwhile.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

const usage = `Approval is a workflow that waits for a person: a request for money waits for the boss.

Usage:

  go run ./examples/approval ask ID EURO   ask the boss for money
  go run ./examples/approval show ID       how far the request has come
  go run ./examples/approval yes ID        the boss decides; no ID refuses
  go run ./examples/approval cancel ID     take the request back

The flag -data DIR, before the command, keeps the store in DIR (default: %s).
`

// limit is how long a command may take. Tests wait longer.
var limit = 10 * time.Second

func main() {
	log.SetFlags(0)
	log.SetPrefix("approval: ")
	dir := filepath.Join(os.TempDir(), "holdfast-approval")
	flag.Usage = func() { fmt.Fprintf(flag.CommandLine.Output(), usage, dir) }
	flag.StringVar(&dir, "data", dir, "")
	flag.Parse()
	verb, id := flag.Arg(0), flag.Arg(1)
	if verb == "" || id == "" {
		flag.Usage()
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	requests := NewRequests(func(_ context.Context, _, text string) error {
		fmt.Println("Mail:", text)
		return nil
	})
	host, err := object.Open(object.Options{Dir: dir}, requests)
	if err != nil {
		log.Fatal(err)
	}
	err = do(ctx, host, requests, verb, id, flag.Arg(2))
	if err := errors.Join(err, host.Shutdown(ctx)); err != nil {
		log.Fatal(err)
	}
}

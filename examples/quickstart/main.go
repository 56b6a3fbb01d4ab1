// Quickstart is one durable object with an alarm: a kettle that is on for two
// seconds. Run it again, or kill it half-way and run it again: it remembers.
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

type kettle struct {
	st     *object.State
	boiled int
}

func load(ctx context.Context, st *object.State) (*kettle, error) {
	k := &kettle{st: st}
	_, err := st.Storage().GetInto(ctx, "boiled", &k.boiled)
	return k, err
}

// Alarm runs when the time has come, in the process that lives then.
func (k *kettle) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	k.boiled++
	return errors.Join(k.st.Storage().Put(ctx, "boiled", k.boiled), k.st.Emit(ctx, "boiled", k.boiled))
}

var kettles = object.Define("kettle", load)
var on = object.Handle(kettles, "on", func(k *kettle, ctx context.Context, d time.Duration) (int, error) {
	return k.boiled, k.st.SetAlarm(ctx, k.st.Now().Add(d))
})

const usage = `Quickstart is one durable object with an alarm: a kettle that is on for two
seconds. Run it again, or kill it half-way and run it again: it remembers.

Usage:

  go run ./examples/quickstart [flags]

Flags:

  -data DIR   keep the store in DIR (default: %s)
  -h          print this help
`

func main() {
	log.SetFlags(0)
	log.SetPrefix("quickstart: ")
	dir := filepath.Join(os.TempDir(), "holdfast-quickstart")
	flag.Usage = func() { fmt.Fprintf(flag.CommandLine.Output(), usage, dir) }
	data := flag.String("data", dir, "")
	if flag.Parse(); flag.NArg() > 0 {
		log.Printf("unexpected argument %q (-h helps)", flag.Arg(0))
		os.Exit(2)
	}
	boil(context.Background(), *data)
}

// boil puts the kettle on and waits until it has boiled.
func boil(ctx context.Context, dir string) {
	host, err := object.Open(object.Options{Dir: dir}, kettles)
	check(err)
	boiled, err := on.Call(ctx, host, "kitchen", 2*time.Second)
	check(err)
	fmt.Printf("The kettle in %s is on. Times that it has boiled before: %d.\n", dir, boiled)
	for e, err := range host.Watch(ctx, kettles.ID("kitchen"), 0) {
		check(err)
		if string(e.Data) == fmt.Sprint(boiled+1) {
			break
		}
	}
	fmt.Printf("It has boiled. Times in all: %d.\n", boiled+1)
	limited, cancel := context.WithTimeout(ctx, 10*time.Second) // without a limit it waits for work that never ends
	defer cancel()
	check(host.Shutdown(limited))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

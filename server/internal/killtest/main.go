// Killtest kills a program behind a server with SIGKILL at random instants, while clients call
// it and follow its events over HTTP, and then compares all that they were told with the store:
//
//	go run ./internal/killtest -kills 100
//	go run ./internal/killtest -kills 100 -seed 42 -dir DIR
//
// Clients give each call an Idempotency-Key, and repeat a call without an answer under its key, as
// clients of a service that may be restarted do. They also repeat answered calls. Followers read
// the events of each object as text/event-stream, and come back with Last-Event-ID: after each
// restart, and some of them also while the program runs.
//
// The instants follow from the seed, which is printed; where the program is at such an instant
// depends on the machine. After a failure the store is kept.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if dir := os.Getenv(childVariable); dir != "" {
		os.Exit(program(dir))
	}
	var o options
	flag.IntVar(&o.kills, "kills", 100, "how many kills with -9")
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the instants (default: from the clock)")
	flag.StringVar(&o.dir, "dir", "", "`directory` of the store, which must be empty (default: a new one)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "killtest:", err)
		os.Exit(1)
	}
}

type options struct {
	kills int
	seed  uint64
	dir   string
}

// run plays a campaign and prints its figures. It removes a directory that it made, unless it fails.
func run(ctx context.Context, o options) (err error) {
	if o.kills < 1 {
		return errors.New("-kills must be at least 1")
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano())
	}
	fmt.Printf("seed %d\n", o.seed)
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "holdfast-killtest-"); err != nil {
			return err
		}
		defer func() {
			if err == nil {
				err = os.RemoveAll(o.dir)
			} else {
				fmt.Fprintln(os.Stderr, "killtest: the store is in", o.dir)
			}
		}()
	}
	began := time.Now()
	random := rand.New(rand.NewPCG(o.seed, 0))
	f, err := campaign(ctx, o.dir, o.seed, o.kills, func() instant { return someTime(random) })
	fmt.Printf("%v\n%.1f s\n", f, time.Since(began).Seconds())
	return err
}

// Most lives are killed up to so long after they listen, and one in eight up to so long after
// it was started, which is mostly while it opens the store.
const (
	underLoad = 350 * time.Millisecond
	inOpen    = 60 * time.Millisecond
)

// someTime draws the instant of a kill.
func someTime(random *rand.Rand) instant {
	if random.IntN(8) == 0 {
		return instant{after: time.Duration(random.Int64N(int64(inOpen)))}
	}
	return instant{listening: true, after: time.Duration(random.Int64N(int64(underLoad)))}
}

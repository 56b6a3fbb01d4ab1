// Demo shows a cluster of three nodes on PostgreSQL that loses its machines. It starts a primary with a synchronous standby and the
// nodes, each a process of its own behind a proxy of its own, all on this machine:
//
//	go run ./storage/shardlog/pglog/demo -kills 10
//	go run ./storage/shardlog/pglog/demo -kills 10 -json
//
// A store of one machine is imported. Then a program with objects, alarms and all job types runs through the cluster, while the node
// that serves is killed with -9, and after each second kill meets another fault: it is paused, cut off from PostgreSQL in one
// direction or in both, or drained, or PostgreSQL itself crashes. Answers and effects go through pipes into one log. In the end the
// store is exported, opened alone, and compared with that log: all that was acknowledged must be there, nothing twice, and the
// answers of the counters must fit one order.
//
// The last line has the result; with -json it is one JSON object. It needs PostgreSQL 15 or newer, and ends
// only the processes that it has started.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/seam"
)

// childVariable makes this binary a node, or the program on one machine.
const childVariable = "HOLDFAST_DEMO_CHILD"

// seams are those of production, because the demo runs real processes.
var seams = seam.Seams{}.WithDefaults()

func main() {
	switch os.Getenv(childVariable) {
	case "node":
		os.Exit(beNode(os.Stdin, os.Stdout))
	case "alone":
		os.Exit(beAlone(os.Stdin, os.Stdout))
	}
	var o options
	flag.IntVar(&o.kills, "kills", 10, "how often the node that serves is killed with -9")
	flag.BoolVar(&o.json, "json", false, "print the result as one line of JSON on stdout, and the rest on stderr")
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the instants (default: from the clock)")
	flag.BoolVar(&o.keep, "keep", false, "keep the directories and logs, also if nothing is wrong")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

type options struct {
	kills      int
	json, keep bool
	seed       uint64
}

// run plays the campaign and prints the result, also when it failed.
func run(ctx context.Context, o options, rest []string) error {
	if o.kills < 1 || len(rest) > 0 {
		return errors.New("-kills must be at least 1, and there are no other arguments")
	}
	bin, err := pgtest.Find()
	if err != nil {
		return err
	}
	if o.seed == 0 {
		o.seed = uint64(seams.Clock.Now().UnixNano())
	}
	var tell io.Writer = os.Stdout
	if o.json {
		tell = os.Stderr
	}
	fmt.Fprintf(tell, "seed %d\n", o.seed)
	f, err := play(ctx, o, bin, tell)
	if !o.json {
		fmt.Println(f)
		return err
	}
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(f))
}

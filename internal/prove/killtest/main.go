// Killtest kills real programs with -9 at random instants, on the disk of this machine,
// and checks the store before they are started again.
//
//	go run ./internal/prove/killtest -program all -cycles 300
//	go run ./internal/prove/killtest -program ingest -cycles 30
//	go run ./internal/prove/killtest -cycles 6 -src "$(go env GOROOT)/src/net" -seed 42
//
// Program "all" uses objects, alarms and all job types under many callers at once.
// Their answers, and the effects of works, go through a pipe into a log outside the
// store. After each life the store is read with no code of the runtime, and compared
// with the log of all lives so far. Some lives end by SIGTERM, on a disk that is full,
// or at a write that fails; they come on top of the cycles. After -each lives the store
// is run until nothing is left to do, checked once more, and a new one begins.
//
// Program "ingest" is the example of that name, over the Go files of -src. Its
// totals are compared with those of find and wc.
//
// The instants follow from the seed, which is printed; where a program is at such
// an instant depends on the machine. After a failure the store is kept.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if os.Getenv(childVariable) != "" {
		os.Exit(beChild())
	}
	var o options
	flag.StringVar(&o.program, "program", "ingest", "which program to kill: \"ingest\" or \"all\"")
	flag.IntVar(&o.cycles, "cycles", 30, "how many kills with -9")
	flag.IntVar(&o.cycles, "n", 30, "the same as -cycles")
	flag.IntVar(&o.each, "each", 0, "the most lives of one store (default: 8 of ingest, 25 of all)")
	flag.StringVar(&o.src, "src", "", "ingest: `directory` to index (default: the src of \"go env GOROOT\")")
	flag.IntVar(&o.parallel, "parallel", 2, "all: how many stores at a time")
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the instants (default: from the clock)")
	flag.BoolVar(&o.json, "json", false, "print the result as one line of JSON on stdout, and the rest on stderr")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "killtest:", err)
		os.Exit(1)
	}
}

type options struct {
	program  string
	cycles   int
	each     int
	src      string
	parallel int
	seed     uint64
	json     bool
}

// figures are the result, as -json prints it.
type figures struct {
	Program     string  `json:"program"`
	Seed        uint64  `json:"seed"`
	Kill9       int     `json:"kill9_cycles"`
	SIGTERM     int     `json:"sigterm_cycles"`
	NoSpace     int     `json:"nospace_cycles"`
	WriteErrors int     `json:"write_error_cycles"`
	Stores      int     `json:"stores"`
	Acked       int     `json:"acked"`
	AckedLost   int     `json:"acked_lost"`
	Refused     int     `json:"refused"`
	Recovered   int64   `json:"recovered"`
	Violations  int     `json:"violations"`
	Seconds     float64 `json:"seconds"`
}

// run plays one program and prints the result, also when it failed.
func run(ctx context.Context, o options) error {
	if o.cycles < 1 || o.each < 0 || o.parallel < 1 {
		return errors.New("-cycles and -parallel must be at least 1, and -each not negative")
	}
	if o.seed == 0 {
		o.seed = uint64(seams.Clock.Now().UnixNano())
	}
	tell := os.Stdout
	if o.json {
		tell = os.Stderr
	}
	fmt.Fprintf(tell, "seed %d\n", o.seed)
	began := seams.Clock.Now()
	var f figures
	var err error
	switch o.program {
	case "ingest":
		f, err = ingest(ctx, o, tell)
	case "all":
		f, err = all(ctx, o, tell)
	default:
		return fmt.Errorf("-program is %q: it must be \"ingest\" or \"all\"", o.program)
	}
	f.Program, f.Seed, f.Seconds = o.program, o.seed, seams.Clock.Now().Sub(began).Seconds()
	if o.json {
		err = errors.Join(err, json.NewEncoder(os.Stdout).Encode(f))
	}
	return err
}
